"""Forms at the door of MCP: the questions of turns that a call waits for, shown to the user of its client.

A client with the new version of the protocol gets the forms as the result of the call, and calls again with the filled
forms. A client with an old version is asked while the call waits. A question that the user leaves open waits on in the
inbox.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ikigai_actors.errors import IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.shown_questions import ShownQuestion, client_form
from ikigai_actors.reach.turns import ASKS
from ikigai_actors.verbs.principal import Principal
from ikigai_actors.verbs.question_forms import MOST_TRIES, questions_for, take_form_answer, waiting_question


class WaitForms:
    """The forms that one waiting call shows to the user of its client. Use it on one event loop."""

    def __init__(
        self,
        reach: Access,
        principal: Principal | None,
        context: ServerRequestContext,
        on_thread: Callable[..., Awaitable[Any]],
    ) -> None:
        """Begin without forms; ``on_thread`` runs work that waits for the database."""
        self._reach, self._principal, self._on_thread = reach, principal, on_thread
        self._session, self._request = context.session, context.request_id
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wrong: dict[str, str] = {}
        self._left_open = set[str]()

    @property
    def _calls_again(self) -> bool:
        return self._session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def can_show(self) -> bool:
        """Return whether the client can show forms."""
        known = self._session.client_capabilities
        forms = None if known is None else known.elicitation
        if forms is None or (forms.form is None and forms.url is not None):
            return False
        return self._calls_again or self._session.can_send_request

    async def take_answers(self, answers: Mapping[str, Any]) -> None:
        """Answer the questions with the forms that the user has filled in since the previous call."""
        for name, answer in answers.items():
            question = await self._on_thread(waiting_question, self._reach, name)
            if question is None:
                continue
            try:
                if not await self._decided(question, getattr(answer, "action", None), getattr(answer, "content", None)):
                    self._left_open.add(name)
            except IkigaiError as error:
                self._wrong[name] = str(error)

    def showing(self) -> frozenset[str]:
        """Return the ids of the questions that the user sees now."""
        return frozenset(name for name, task in self._tasks.items() if not task.done())

    async def show_new(self, turns: Sequence[Mapping[str, Any]]) -> InputRequiredResult | None:
        """Show the open questions of these turns; return the call's result if the client must call again, else None."""
        asking = {turn["agent"] for turn in turns if turn["status"] == ASKS}
        waiting = await self._on_thread(questions_for, self._reach, self._principal, asking) if asking else []
        by_id = {question.id: question for question in waiting}
        for name in self._tasks.keys() - by_id.keys():
            self._tasks[name].cancel()
        new = [question for name, question in by_id.items() if name not in self._tasks and name not in self._left_open]
        if not self._calls_again:
            for question in new:
                self._tasks[question.id] = asyncio.get_running_loop().create_task(self._show(question))
        elif new:
            return InputRequiredResult(input_requests={each.id: ElicitRequest(params=self._form(each)) for each in new})
        return None

    def close(self) -> None:
        """Withdraw the forms that the client's user still sees."""
        for task in self._tasks.values():
            task.cancel()

    async def _show(self, question: ShownQuestion) -> None:
        for _ in range(MOST_TRIES):
            form = self._form(question)
            with suppress(MCPError, ValidationError):
                said = await self._session.elicit_form(form.message, form.requested_schema, self._request)
                try:
                    await self._decided(question, said.action, said.content)
                except IkigaiError as error:
                    self._wrong[question.id] = str(error)
                    continue
            return

    async def _decided(self, question: ShownQuestion, action: object, content: object) -> bool:
        decided: bool = await self._on_thread(take_form_answer, self._reach, self._principal, question, action, content)
        return decided

    def _form(self, question: ShownQuestion) -> ElicitRequestFormParams:
        message = "\n\n".join(filter(None, (self._wrong.get(question.id), question.whole)))
        return ElicitRequestFormParams(mode="form", message=message, requested_schema=client_form(question))
