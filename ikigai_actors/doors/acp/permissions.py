"""The questions to a client: calls of its agents that wait for a decision, and questions of models to people."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any

from acp.helpers import text_block, tool_content
from acp.schema import (
    AllowedOutcome,
    CreateFormSessionElicitationRequest,
    ElicitationSchema,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.doors.acp.models import checked, dumped
from ikigai_actors.doors.acp.session_tree import Route
from ikigai_actors.doors.acp.updates import thought_chunk
from ikigai_actors.doors.acp.view import ClientView
from ikigai_actors.doors.call_title import call_title
from ikigai_actors.doors.json_rpc import Params, RpcError
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.shown_questions import ShownQuestion, client_form
from ikigai_actors.verbs.acts.changes import decide_on
from ikigai_actors.verbs.question_forms import MOST_TRIES, questions_that_wait, take_form_answer, waiting_question
from ikigai_actors.verbs.text.call_page import change_note

ALWAYS = "allow_always"
OPTIONS = (
    PermissionOption(option_id="allow_once", name="Allow", kind="allow_once"),
    PermissionOption(option_id=ALWAYS, name="Always for this agent and below", kind="allow_always"),
    PermissionOption(option_id="reject_once", name="Deny", kind="reject_once"),
)
"""The options that a client is offered for a call."""

_OTHER_WAYS = "Approve or deny it by `ikigai approve` and `ikigai deny`, in the shell, or by a rule."
_PATIENCE = 0.5
"""Seconds of pause after an answer of the client that decides nothing."""

QuestionKey = tuple[str, str]
"""An agent, and the full name of its call."""


class Permissions:
    """Asks one client about calls that wait for a decision, and the questions of models."""

    def __init__(
        self, access: Access, view: ClientView, pool: Executor, ask_client: Callable[[str, Params], Awaitable[Any]]
    ) -> None:
        """Begin without questions. Calls that wait for the database run in ``pool``."""
        self._access, self._view, self._pool, self._ask_client = access, view, pool, ask_client
        self._loop = asyncio.get_running_loop()
        self.asked: dict[QuestionKey, asyncio.Task[None]] = {}
        """The tasks that wait for the client's decisions, by call."""
        self._looking = asyncio.Lock()

    async def ask_what_is_open(self) -> None:
        """Ask the client about each waiting call below its sessions, once.

        Withdraw the questions that were decided elsewhere.
        """
        async with self._looking:  # so that no older look decides after a later one
            waiting = await self._loop.run_in_executor(self._pool, self._questions)
            for key in [key for key in self.asked if key not in waiting]:
                self.asked.pop(key).cancel()
            for key, (question, route) in waiting.items():
                if key not in self.asked:
                    work = self._ask(question.call, route) if question.is_call else self._ask_person(question, route)
                    self.asked[key] = self._loop.create_task(work)

    def _questions(self) -> dict[QuestionKey, tuple[ShownQuestion, Route]]:
        pending = questions_that_wait(self._access)
        with self._view.lock:
            routes = [(each, route) for each in pending if (route := self._view.route(each.agent)) is not None]
        return {(each.agent, each.call.full_name): (each, route) for each, route in routes}

    async def _ask_person(self, question: ShownQuestion, route: Route) -> None:
        """Let the user fill in the form of a question, where the client shows forms."""
        wrong = ""
        for _ in range(MOST_TRIES if self._view.shows_forms else 0):
            asked = _form_request(question, wrong, route.session)
            try:
                said = await self._ask_client("elicitation/create", dumped(asked))
                answer = said if isinstance(said, dict) else {}
                work = partial(
                    take_form_answer, self._access, None, question, answer.get("action"), answer.get("content")
                )
                if await self._loop.run_in_executor(self._pool, work):
                    return
            except BadInput as error:
                wrong = str(error)
                continue
            except (RpcError, IkigaiError):
                pass
            break
        await asyncio.sleep(_PATIENCE)
        with suppress(IkigaiError):
            await self._loop.run_in_executor(self._pool, self._say_where_it_waits, question, route)

    def _say_where_it_waits(self, question: ShownQuestion, route: Route) -> None:
        if waiting_question(self._access, question.id) is not None:
            with self._view.lock:
                of = f"{question.agent}:{question.call.full_name}:waits"
                self._view.show(route.session, [thought_chunk(f"{question.whole}\n\n{question.elsewhere}", of)])

    async def _ask(self, call: PendingCall, route: Route) -> None:
        title = call_title(call.tool, call.input)
        if route.session != call.agent:
            name = await self._loop.run_in_executor(self._pool, self._view.name, call.agent)
            title = f"{name}: {title}"
        asked = _request(call, title, route.session)
        with suppress(RpcError, IkigaiError):
            said = await self._ask_client("session/request_permission", dumped(asked))
            outcome = checked(RequestPermissionResponse, said).outcome
            option = outcome.option_id if isinstance(outcome, AllowedOutcome) else None
            if option in [option.option_id for option in asked.options]:
                await self._loop.run_in_executor(self._pool, self._decide, call, option)
                return
        await asyncio.sleep(_PATIENCE)  # a client that cancels the turn answers its questions first
        with suppress(IkigaiError):
            await self._loop.run_in_executor(self._pool, self._say_that_it_waits, call, route, title)

    def _say_that_it_waits(self, call: PendingCall, route: Route, title: str) -> None:
        """Show the client that a call still waits: it stays open, and the next client is asked about it."""
        if call in self._access.system.approvals.pending():
            waits = f"Waits for a decision that did not come from here: {title}. {_OTHER_WAYS}"
            with self._view.lock:
                of = f"{call.agent}:{call.full_name}:waits"
                self._view.show(route.session, [thought_chunk(waits, of)])

    def _decide(self, call: PendingCall, option: object) -> None:
        allow, always = option in ("allow_once", ALWAYS), option == ALWAYS
        if allow or option == "reject_once":
            decide_on(self._access, call.agent, call.full_name, allow, always=always)


def _form_request(question: ShownQuestion, wrong: str, session: str) -> CreateFormSessionElicitationRequest:
    return CreateFormSessionElicitationRequest(
        session_id=session,
        tool_call_id=question.call.id,
        message="\n\n".join(filter(None, (wrong, question.whole))),
        mode="form",
        requested_schema=ElicitationSchema.model_validate(client_form(question)),
    )


def _request(call: PendingCall, title: str, session: str) -> RequestPermissionRequest:
    update = ToolCallUpdate(tool_call_id=call.id, title=title, raw_input=dict(call.input), status="pending")
    if note := change_note(call):
        update = update.model_copy(update={"content": [tool_content(text_block(note))]})
    options = [option for option in OPTIONS if call.always or option.option_id != ALWAYS]
    return RequestPermissionRequest(session_id=session, tool_call=update, options=options)
