"""Files of the API: the bytes of pictures, PDFs and sounds, by their hash.

    POST /v1/files?name=plan.png                        stores the body for its principal, a day at least
    GET  /v1/files/SHA256                               a file that the principal has uploaded
    GET  /v1/files/SHA256?agent=AGENT&message=7         a file of a message of an agent in reach

A prompt names uploads: ``{"text": …, "files": [sha256]}``. Bytes are judged as `ikigai_actors.attachments` says.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from ikigai_actors.attachments import LARGEST, Attachment, attachment
from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.doors.api.requests import ApiRequest, check_storable, number_in
from ikigai_actors.errors import BadInput
from ikigai_actors.http_server.answers import answer
from ikigai_actors.http_server.requests import SendEvent
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.files import attached_file, keep_upload, uploaded_file
from ikigai_actors.reach.keys import request_under
from ikigai_actors.verbs.principal import Principal, check_right
from ikigai_actors.verbs.rights import Right


class ApiFiles(NamedTuple):
    """The uploads and downloads of one principal of the API."""

    access: Access
    principal: Principal
    on_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    """Runs work that waits for a database on a thread."""

    async def upload(self, request: ApiRequest, out: SendEvent) -> None:
        """Store the body of the request as a file. Raises `IkigaiError`, `ApiProblem` and `RequestRefused`."""
        check_right(self.principal, Right.PROMPT, "An upload")
        if request.media.startswith("multipart/"):
            raise ApiProblem("media", "Expected the bytes as they are, as curl --data-binary @FILE sends them.")
        name = request.query.get("name", "")
        check_storable(name)
        body = await request.body(LARGEST)
        file: Attachment = await self.on_thread(partial(attachment, body, name))
        key = request.key
        fields = {"sha256": file.sha256, "name": file.name}
        keyed = None if key is None else request_under(self.principal.id, key, "files", fields)
        repeated = await self.on_thread(partial(keep_upload, self.access.client, self.principal.id, file, keyed))
        place = f"{request.root}/v1/files/{file.sha256}"
        headers = {"Location": place, **({"Idempotency-Replayed": "true"} if repeated else {})}
        await answer(out, 200 if repeated else 201, file.stored(), headers)

    async def download(self, sha256: str, request: ApiRequest, out: SendEvent) -> None:
        """Answer with the bytes of a file. Raises `IkigaiError` and `ApiProblem`."""
        query = request.query
        if "agent" in query:
            position = number_in(query.get("message", ""), "message")
            read = partial(attached_file, self.access, query["agent"], position, sha256)
        else:
            read = partial(uploaded_file, self.access.client, self.principal.id, sha256)
        try:
            file: Attachment = await self.on_thread(read)
        except BadInput as error:
            raise ApiProblem("not-found", str(error)) from None
        named = f"attachment; filename*=UTF-8''{quote(file.name)}" if file.name else "attachment"
        await answer(out, 200, file.data, {"Content-Disposition": named}, file.media)
