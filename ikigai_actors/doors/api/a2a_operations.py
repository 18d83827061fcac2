"""The operations of A2A 1.0 on one agent with a card, for one client of the API.

    GET  /a2a/AGENT/.well-known/agent-card.json     the agent card; no token is needed
    GET  /a2a/AGENT/extendedAgentCard               the same card, for clients with a token
    POST /a2a/AGENT/message:send                    opens a turn, once for a principal and messageId
    POST /a2a/AGENT/message:stream                  the same; answers with the turn's server-sent events
    GET  /a2a/AGENT/tasks · /tasks/ID               the turns of this client, or one of them
    POST /a2a/AGENT/tasks/ID:subscribe              the further events of a turn, as server-sent events
    POST /a2a/AGENT/tasks/ID:cancel                 interrupts this turn (INT), and no other
    POST /a2a/AGENT/tasks/ID/pushNotificationConfigs        adds a receiver of the changes of a task
    GET  /a2a/AGENT/tasks/ID/pushNotificationConfigs[/ID]   the principal's receivers; DELETE removes one

A message without ``contextId`` forks the agent (`ikigai_actors.reach.contexts`); a message with ``contextId`` opens a
turn of that context; a message with ``taskId`` answers the question of that task. Each message is carried out once
under its key, so a client that got no answer sends the same message again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from ikigai_actors.doors.api.a2a_listing import ListedTasks
from ikigai_actors.doors.api.a2a_problems import (
    MEDIA_A2A,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    A2aRefused,
)
from ikigai_actors.doors.api.a2a_pushes import push_config, shown_push
from ikigai_actors.doors.api.a2a_tasks import (
    A2A_VERSION,
    OVER_STATES,
    RESTING_STATES,
    TaskStream,
    agent_card,
    sent_message,
    state_of,
    task_json,
)
from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.doors.api.requests import ApiRequest, json_object, number_in
from ikigai_actors.errors import BadInput
from ikigai_actors.http_server.answers import SentEventStream, answer
from ikigai_actors.http_server.requests import MOST_BODY, SendEvent
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.contexts import CardedAgent, ContextReader, ContextTask, SentMessage, TaskName
from ikigai_actors.reach.news import NewsFeed
from ikigai_actors.verbs.acts.contexts import answer_a2a_task, cancel_a2a_task, open_task
from ikigai_actors.verbs.acts.task_pushes import PushConfig, delete_push, pushes, set_push
from ikigai_actors.verbs.principal import Principal, acting_as, check_right
from ikigai_actors.verbs.rights import Right

T = TypeVar("T")

A2A_LOOKS_EVERY = 1.0
"""Seconds between two checks of a task by a waiting request, even without news."""

A2A_STREAM_LOOKS = 5.0
"""Seconds without news after which a stream checks its task again, and sends a keep-alive."""

CANCEL_SECONDS = 5.0
"""Seconds for which a cancellation waits for the end of its turn."""


class A2aDoor(NamedTuple):
    """Answers the A2A requests of one client of the API."""

    access: Access
    """The agents that the client may reach."""
    news: NewsFeed
    principal: Principal
    on_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    """Runs work that waits for a database on another thread."""
    in_stream: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
    """Runs work that keeps a request open, if the principal may have one more open request."""
    url: str
    """The address of the API for its clients."""

    async def answer(self, request: ApiRequest, agent: str, rest: list[str], out: SendEvent) -> None:
        """Answer a request. Raises `A2aRefused`, `ApiProblem`, `IkigaiError` and `RequestRefused`."""
        check_a2a_version(request)
        carded: CardedAgent = await self.on_thread(lambda: self._reader().carded(agent))
        match request.method, [*rest[:-1], *_verb_of(rest[-1])]:
            case "GET", ["extendedAgentCard", ""]:
                await self._give(out, agent_card(carded, card_url(self.url, carded)))
            case "POST", ["message", "send"]:
                await self.in_stream(lambda: self._send(request, carded, out))
            case "POST", ["message", "stream"]:
                name, history, _ = await self._taken(request, carded)
                await self.in_stream(lambda: self._stream(request, carded, name, history, out))
            case "GET" | "POST", ["tasks", task, "subscribe"]:
                name = await self._named(carded, task)
                await self._refuse_over(await self._task(carded, name))
                await self.in_stream(lambda: self._stream(request, carded, name, None, out))
            case "GET", ["tasks", ""]:
                await self._list(request, carded, out)
            case "GET", ["tasks", task, ""]:
                name = await self._named(carded, task)
                history = _count_in(request, "historyLength")
                seen = await self._task(carded, name)
                await self._give(out, task_json(seen, self.principal, history))
            case "POST", ["tasks", task, "cancel"]:
                await self._cancel(await self._named(carded, task), carded, out)
            case method, ["tasks", task, "pushNotificationConfigs", *config]:
                await self._push(method, request, carded, await self._named(carded, task), "".join(config), out)
            case _:
                raise ApiProblem("not-found", "A2A has no such operation, or this agent does not do it.")

    async def _taken(self, request: ApiRequest, carded: CardedAgent) -> tuple[TaskName, int | None, bool]:
        """Carry out a request with a message; return its task, the wanted history length, and whether to wait."""
        body = json_object(await request.body(MOST_BODY))
        how = body.get("configuration") or {}
        history = how.get("historyLength") if isinstance(how, dict) else -1
        if history is not None and not (type(history) is int and history >= 0):
            raise BadInput("Expected configuration as an object, with historyLength as a number, 0 or more.")
        wanted = how.get("taskPushNotificationConfig")
        push = push_config(wanted) if wanted else None
        name = await self._sent(carded, sent_message(body))
        if push is not None:
            await self._set_push(carded, name, push)
        return name, history, how.get("returnImmediately") is not True

    async def _send(self, request: ApiRequest, carded: CardedAgent, out: SendEvent) -> None:
        name, history, waits = await self._taken(request, carded)
        gone = asyncio.ensure_future(request.gone())
        try:
            task = await self._rested(carded, name, gone, None if waits else 0)
        finally:
            gone.cancel()
        await self._give(out, {"task": task_json(task, self.principal, history)})

    async def _stream(
        self, request: ApiRequest, carded: CardedAgent, name: TaskName, history: int | None, out: SendEvent
    ) -> None:
        """Stream a task and its changes until it rests. A client whose connection breaks subscribes again."""
        async with (
            self.news.watch(name.context, pieces=True) as watch,
            SentEventStream(request, out) as stream,
        ):
            shown = TaskStream(self.principal)
            while not stream.is_left and not self.news.ending.is_set():
                watch.is_behind = False
                task = await self._task(carded, name)
                for event in shown.events(task, history):
                    await stream.event(event)
                if state_of(task, self.principal) in RESTING_STATES:
                    break
                pieces = [] if watch.is_behind else watch.pieces()
                for event in shown.pieces(task, pieces):
                    await stream.event(event)
                if not watch.is_behind and not await watch.news(A2A_STREAM_LOOKS):
                    await stream.comment()

    async def _refuse_over(self, task: ContextTask) -> None:
        if state_of(task, self.principal) in OVER_STATES:
            raise A2aRefused(UNSUPPORTED_OPERATION, f"Task {task.name} is over: read it by GET /tasks/{task.name}.")

    async def _list(self, request: ApiRequest, carded: CardedAgent, out: SendEvent) -> None:
        wanted = ListedTasks.of(request.query)
        if wanted.context:
            await self.on_thread(lambda: self._reader().context(carded, wanted.context))
        every = await self.on_thread(lambda: self._reader().listed(carded, wanted.context or None))
        await self._give(out, wanted.page(every, self.principal))

    async def _sent(self, carded: CardedAgent, message: SentMessage) -> TaskName:
        """Carry out a message once, as a fork, a turn or an answer; return its task."""
        check_right(self.principal, Right.PROMPT, "A message")
        if not message.task:
            opened = await self._acting(lambda: open_task(self.access, carded, self.principal, message))
            if opened is None:
                raise ApiProblem("not-yet", "This context is not born yet: send the same message again.")
            return opened
        name = await self._named(carded, message.task)
        if message.context and message.context != name.context:
            raise BadInput(f"Task {name} is of another context than {message.context[:80]}.")
        if not await self._acting(lambda: answer_a2a_task(self.access, carded, name, self.principal, message)):
            task = await self._task(carded, name)
            why = "is over" if state_of(task, self.principal) in OVER_STATES else "asks nothing of you"
            raise A2aRefused(UNSUPPORTED_OPERATION, f"Task {name} {why}: send the message without taskId.")
        return name

    async def _cancel(self, name: TaskName, carded: CardedAgent, out: SendEvent) -> None:
        check_right(self.principal, Right.PROMPT, "A cancellation")
        await self._task(carded, name)
        if not await self._acting(lambda: cancel_a2a_task(self.access, carded, name)):
            why = "is over, or is not begun yet"
            raise A2aRefused(TASK_NOT_CANCELABLE, f"Task {name} {why}: ask for it again.")
        never = asyncio.get_running_loop().create_future()
        task = await self._rested(carded, name, never, CANCEL_SECONDS)
        await self._give(out, task_json(task, self.principal))

    async def _push(
        self, method: str, request: ApiRequest, carded: CardedAgent, task: TaskName, config: str, out: SendEvent
    ) -> None:
        """Set, list, show or delete the receivers that this principal has named for a task."""
        await self._task(carded, task)
        if method == "POST" and not config:
            wanted = push_config(json_object(await request.body(MOST_BODY)), str(task))
            config = await self._set_push(carded, task, wanted)
        elif method == "DELETE" and config:
            check_right(self.principal, Right.PROMPT, "A push notification config")
            await self._acting(lambda: delete_push(self.access, task, self.principal, config))
            return await self._give(out, {})
        elif method != "GET":
            raise ApiProblem("no-method", "Expected POST for all configs, DELETE for one, or GET.")
        every = await self.on_thread(lambda: pushes(self.access, task, self.principal))
        shown = [shown_push(each, str(task)) for each in every]
        if not config:
            return await self._give(out, {"configs": shown, "nextPageToken": ""})
        for each in shown:
            if each["id"] == config:
                return await self._give(out, each)
        raise A2aRefused(TASK_NOT_FOUND, f"Task {task} has no push notification config {config[:80]!r}.")

    async def _set_push(self, carded: CardedAgent, task: TaskName, config: PushConfig) -> str:
        """Set a push receiver, and push the task's present state; return the id of the config."""
        check_right(self.principal, Right.PROMPT, "A push notification config")
        return await self._acting(lambda: set_push(self.access, carded, task, self.principal, config))

    async def _rested(
        self, carded: CardedAgent, name: TaskName, gone: "asyncio.Future[None]", seconds: float | None
    ) -> ContextTask:
        """Wait until a task rests, the time is over, or the client is gone; return the task."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        async with self.news.watch(name.context) as watch:
            while True:
                task = await self._task(carded, name)
                rests = state_of(task, self.principal) in RESTING_STATES
                left = A2A_LOOKS_EVERY if until is None else min(A2A_LOOKS_EVERY, until - loop.time())
                if rests or left <= 0 or gone.done() or self.news.ending.is_set():
                    return task
                await watch.news(left)

    async def _named(self, carded: CardedAgent, text: str) -> TaskName:
        return await self._of_task(lambda: self._reader().name(carded, text))

    async def _task(self, carded: CardedAgent, name: TaskName) -> ContextTask:
        return await self._of_task(lambda: self._reader().task(carded, name))

    async def _of_task(self, work: Callable[[], T]) -> T:
        """Run work on a task on another thread, and return the result. Raises `A2aRefused` if there is no such task."""
        try:
            done: T = await self.on_thread(work)
        except BadInput as error:
            raise A2aRefused(TASK_NOT_FOUND, str(error)) from None
        return done

    async def _acting(self, work: Callable[[], T]) -> T:
        """Run work on another thread as an act of the principal, and return the result."""

        def acting() -> T:
            with acting_as(self.principal, self.access):
                return work()

        done: T = await self.on_thread(acting)
        return done

    async def _give(self, out: SendEvent, value: Any) -> None:
        await answer(out, 200, value, media=MEDIA_A2A)

    def _reader(self) -> ContextReader:
        return ContextReader(self.access)


def card_url(url: str, carded: CardedAgent) -> str:
    """Return the address at which clients reach the A2A operations of an agent."""
    return f"{url}/a2a/{carded.record.uuid}"


def check_a2a_version(request: ApiRequest) -> None:
    """Refuse another version of the protocol; a client that names none speaks 0.3. Raises `A2aRefused`."""
    version = request.headers.get("a2a-version") or request.query.get("A2A-Version") or "0.3"
    if version.split(".")[:2] != A2A_VERSION.split("."):
        raise A2aRefused(VERSION_NOT_SUPPORTED, f"Expected A2A-Version: {A2A_VERSION}; got {version[:20]!r}.")


def _verb_of(part: str) -> list[str]:
    """Return the last part of a path, and the operation after its colon, if there is one."""
    noun, _, verb = part.rpartition(":") if ":" in part else (part, "", "")
    return [noun, verb]


def _count_in(request: ApiRequest, name: str) -> int | None:
    text = request.query.get(name)
    return None if text is None else number_in(text, name)
