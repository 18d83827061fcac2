"""A provider that is a Python function: how code-driven workers join a tree of agents.

    def worker(request: Request) -> str:
        return f"{len(request.messages)} messages so far"

    ActorSystem.open(providers={"worker": FunctionProvider(worker)})

The function takes the request and returns text, a `Reply`, content blocks or calls (see `shorthand`). It may block:
each call has a thread to itself, so a function that never returns delays no other agent. An
``async def`` runs on the event loop and must not block. Exceptions of the function are passed on unchanged: the agent's
own code has failed, not a remote service, so the agent has crashed and its supervisor decides. `Exit` ends the agent. A
circle of waits (`WouldDeadlock`) ends the turn with an error only: the same function would close it again.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ikigai_actors.actors.threads import HARMLESS, in_thread, tried_to_end
from ikigai_actors.arguments import check_callable, check_type
from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request
from ikigai_actors.providers.shorthand import ReplyShorthand, as_reply


class FunctionProvider:
    """Answers with the result of a function.

    Args:
        fn: Takes a `Request`; returns an answer, or is a coroutine function that does.
        name: The provider's name in ``model`` settings.
    """

    own_code = True
    counts = False

    def __init__(
        self, fn: Callable[[Request], ReplyShorthand | Awaitable[ReplyShorthand]], name: str = "function"
    ) -> None:
        self.name = check_type(name, str, "name", "text")
        self._fn = check_callable(fn, "fn", "a function that takes a request")
        self.is_plain = not inspect.iscoroutinefunction(self._fn)
        """Whether the function is none of the event loop's business: it may block the thread that calls it."""

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Call the function, and return its result as a reply.

        Raises:
            TypeError: The function returned something that is no answer.
            RuntimeError: The function tried to end the process or the thread, for example by `SystemExit`.
            Exception: The function raised this exception.
        """
        if self.is_plain:
            answer: Any = await in_thread(lambda: self.call(request), f"{self.name} {request.agent}")
        else:
            answer = self.call(request)
        return await self.finish(answer, on_delta)

    def call(self, request: Request) -> Any:
        """Return the result of the function: an answer or an awaitable. Raises the function's errors."""
        return self._fn(request)

    async def finish(self, answer: Any, on_delta: OnDelta) -> Reply:
        """Return the reply for the result of `call`. Raises the errors of `respond`."""
        return self.reply(await _guarded(answer) if inspect.isawaitable(answer) else answer, on_delta)

    def reply(self, answer: Any, on_delta: OnDelta) -> Reply:
        """Return the reply for an answer. Raises `TypeError` if it is no answer."""
        reply = as_reply(answer)
        if reply.text:
            on_delta(Delta(reply.text))
        return reply

    async def close(self) -> None:
        """Do nothing: the threads are daemons and end by themselves."""


async def _guarded(answer: Awaitable[Any]) -> Any:
    """Await a coroutine that must not end the event loop; cancellation goes through."""
    try:
        return await answer
    except HARMLESS:
        raise
    except BaseException as error:
        raise tried_to_end(error) from error
