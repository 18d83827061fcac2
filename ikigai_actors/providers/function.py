"""A provider that is a Python function: how code-driven workers join a tree of agents.

    def worker(request: Request) -> str:
        return f"{len(request.messages)} messages so far"

    ActorSystem.open(providers={"worker": FunctionProvider(worker)})

The function takes the request and returns text, a `Reply`, content blocks or calls (see `shorthand`). It may block:
each call has a thread of its own, so a function that never returns keeps nobody else waiting. An ``async def`` runs on
the event loop and must not block. What the function raises goes through as it is: it is the agent's own code that
failed, not a remote service.
"""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request
from ikigai_actors.providers.shorthand import Answer, as_reply


class FunctionProvider:
    """Answers with what a function returns.

    Args:
        fn: Takes a `Request`; returns an answer, or is a coroutine function that does.
        name: The provider's name in ``model`` settings.
    """

    def __init__(self, fn: Callable[[Request], Answer | Awaitable[Answer]], name: str = "function") -> None:
        self.name = name
        self._fn = fn

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Call the function.

        Raises:
            TypeError: It returned something that is no answer.
            RuntimeError: It tried to end the process or the thread (`SystemExit` and its like).
            Exception: Whatever else the function raises.
        """
        if inspect.iscoroutinefunction(self._fn):
            answer: Any = self._fn(request)
        else:
            answer = await _in_thread(lambda: self._fn(request), f"{self.name} {request.agent}")
        if inspect.isawaitable(answer):
            answer = await _guarded(answer)
        reply = as_reply(answer)
        if reply.text:
            on_delta(Delta(reply.text))
        return reply

    async def close(self) -> None:
        """Nothing to give back: the threads are daemons and end by themselves."""


class _Outcome(NamedTuple):
    """What came of a call. Never set as a future's exception: it refuses `StopIteration`, and the turn would hang."""

    value: Any = None
    error: Exception | None = None


async def _in_thread(call: Callable[[], Any], thread_name: str) -> Any:
    """Run a call on a new thread, in a copy of the current context; a cancelled call goes on there and is forgotten."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        outcome = _attempt(lambda: context.run(call))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, future, outcome)

    threading.Thread(target=run, name=thread_name, daemon=True).start()
    outcome = await future
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _attempt(call: Callable[[], Any]) -> _Outcome:
    """The outcome of a call, whatever it is: this is the thread's edge, past it an error would be lost."""
    try:
        return _Outcome(call())
    except Exception as error:
        return _Outcome(error=error)
    except BaseException as error:
        return _Outcome(error=_tried_to_end(error))


def _settle(future: "asyncio.Future[_Outcome]", outcome: _Outcome) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


async def _guarded(answer: Awaitable[Any]) -> Any:
    """Await a coroutine that must not end the event loop; cancellation goes through."""
    try:
        return await answer
    except (SystemExit, KeyboardInterrupt) as error:
        raise _tried_to_end(error) from error


def _tried_to_end(error: BaseException) -> RuntimeError:
    failure = RuntimeError(f"The provider's function raised {error!r}; raise an Exception to fail, return to answer.")
    failure.__cause__ = error
    return failure
