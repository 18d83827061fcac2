"""The common parts of chat completions and Responses, both ways. Pure."""

import hashlib
import string
from base64 import standard_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.providers.base import Usage
from ikigai_actors.providers.blocks import Attached, Blob
from ikigai_actors.providers.messages_form import Blobs
from ikigai_actors.providers.streamed_reply import StreamedReply

_NAME_LENGTH = 64
"""Characters of a tool's name at most."""
_DESCRIPTION_LENGTH = 1024
"""The most characters of a tool's description. Descriptions of parameters have no limit."""
_LETTERS = string.ascii_letters + string.digits
_PLAIN_ID_LENGTH = 9
"""The length of an id of letters and digits that every service accepts. Mistral's accepts no other length."""


class OpenAIReply(StreamedReply):
    """A reply of an OpenAI protocol while it arrives; ``tools`` are those of the request."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self._names = own_names(tools)
        self._model = ""
        self._usage: Usage | None = None
        self._refused = False


def sent_name(name: str) -> str:
    """Return a tool's name in a form that the service accepts.

    A long name is cut and ends with its hash, so that names stay different.
    """
    if len(name) <= _NAME_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _NAME_LENGTH - 9]}_{digest}"


def function_form(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as a function of OpenAI's protocols.

    If the description is too long, its rest is put into the description of the parameters.
    """
    description, schema = tool.get("description", ""), tool["input_schema"]
    if len(description) > _DESCRIPTION_LENGTH:
        more = "\n\n".join(filter(None, (f"…{description[_DESCRIPTION_LENGTH - 1 :]}", schema.get("description"))))
        description, schema = f"{description[: _DESCRIPTION_LENGTH - 1]}…", {**schema, "description": more}
    return {"name": sent_name(tool["name"]), "description": description, "parameters": schema}


def own_names(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the original names of tools, by the names that are sent."""
    return {sent_name(tool["name"]): tool["name"] for tool in tools}


def plain_id(call_id: str) -> str:
    """Return an id for a call that every service accepts. The same call always gets the same id."""
    number = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:8])
    letters = []
    for _ in range(_PLAIN_ID_LENGTH):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "".join(letters)


def data_url(blob: Blob, blobs: Blobs) -> str:
    """Return a ``data:`` URL with the bytes of a blob."""
    return f"data:{blob.media};base64,{standard_b64encode(blobs[blob.sha256]).decode('ascii')}"


def file_name(blob: Blob) -> str:
    """Return the file name of a document, which services require."""
    return blob.name or "document.pdf"


def not_taken(block: Attached) -> str:
    """Return the text that replaces an attachment which a model cannot take."""
    return f"({block.blob.name or block.blob.media}: this model takes no {block.blob.media})"
