"""Other people's code on threads of its own: it may block, hang or try to end the process, and harms nobody.

A thread cannot be killed. So these are daemons: one that never ends does not keep the process from ending, and what it
returns after its call was cancelled is forgotten.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class _Outcome(NamedTuple):
    """What came of a call. Never set as a future's exception: it refuses `StopIteration`, and the turn would hang."""

    value: Any = None
    error: Exception | None = None


async def in_thread(call: Callable[[], Any], thread_name: str) -> Any:
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
        return _Outcome(error=tried_to_end(error))


def _settle(future: "asyncio.Future[_Outcome]", outcome: _Outcome) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


def tried_to_end(error: BaseException) -> RuntimeError:
    """What becomes of `SystemExit` and its like at the edge of other people's code."""
    failure = RuntimeError(f"The function raised {error!r}; raise an Exception to fail, return to answer.")
    failure.__cause__ = error
    return failure
