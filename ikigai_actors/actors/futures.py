"""Futures: the answer to a command, for which a thread can wait, and which an asyncio program can await.

A future is a `pykka.Future`, with two differences. Awaiting one does not block the event loop (Pykka's own does). And a
wait that could never end is refused: with `WouldDeadlock` on a thread of the runtime, which would have to do the work,
and in the provider or tool of an agent for which the awaited agent waits; with `WouldWaitForItself` in an agent's own
provider or tool, for something that happens after its turn.
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import pykka

from ikigai_actors.actors.promise import Promise
from ikigai_actors.actors.threads import current_threads, in_thread
from ikigai_actors.actors.tool_slots import lent
from ikigai_actors.actors.wait_graph import Until, WaitedBy
from ikigai_actors.actors.wait_registry import AwaitedAgent, OpenWait, WaitTarget, acting_code
from ikigai_actors.arguments import check_callable, check_timeout
from ikigai_actors.errors import IkigaiError, NoCurrentAgent, Repeated, WouldDeadlock, WouldWaitForItself

T = TypeVar("T")

MAY_HAPPEN = "the request may still be carried out."
"""The end of the message of a time-out, for a command that was sent and may still be carried out."""


class ThisThread(threading.local):
    """The state that each thread has for itself."""

    forbidden: str | None = None
    """The name of this thread, if it must never wait for a future; None if it may wait."""


this_thread = ThisThread()

acting_agent: contextvars.ContextVar[Any] = contextvars.ContextVar("acting_agent")
"""The handle of the agent whose provider or tool runs in this context; it has a ``uuid``."""


def current_acting_agent() -> Any:
    """Return the handle of the agent in whose provider or tool the caller runs. Raises `NoCurrentAgent` elsewhere."""
    agent = acting_agent.get(None)
    if agent is None:
        raise NoCurrentAgent(
            "current_agent() works inside a FunctionProvider or a tool; elsewhere use system.agent(...)."
        )
    return agent


class TimedOut(IkigaiError, TimeoutError, pykka.Timeout):
    """The answer did not come within the timeout. The command may still be carried out."""


def forbid_blocking(what: str | None) -> str | None:
    """Declare that the calling thread must never wait for a future; None allows it again.

    Args:
        what: the name of the thread, for the error message.

    Returns:
        The name declared before; None if the thread was allowed to wait.
    """
    before, this_thread.forbidden = this_thread.forbidden, what
    return before


def blocking_is_allowed() -> bool:
    """Return whether the calling thread may wait for futures, according to `forbid_blocking` alone."""
    return this_thread.forbidden is None


def refuse_to_block() -> None:
    """Raise `WouldDeadlock` if the calling thread must not block, as `forbid_blocking` has declared."""
    what = this_thread.forbidden
    if what is not None:
        raise WouldDeadlock(
            f"A blocking call on {what} would keep the runtime from answering it. "
            "Use `await future` in a coroutine, or make the call from a thread of your own."
        )


def may_block() -> bool:
    """Return whether the calling thread may wait.

    False on the runtime's threads that must not wait, and on a thread with a running event loop.
    """
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return False
    return blocking_is_allowed()


class Future(pykka.Future[T]):
    """A value that comes now or later. See `pykka.Future` for ``map``, ``filter``, ``join`` and ``reduce``."""

    keyed: tuple[Any, Callable[[dict[str, Any]], Any]] | None = None
    """For a command that is done only once under a key (`ikigai_actors.records.once`): the call, and a function that
    turns the outcome of the earlier call into the argument of `settle`; None for other commands.
    """
    doubted: Callable[[BaseException], object] | None = None
    """Takes the first exception and settles the future in its place, since the database may have an answer: that of
    another call with the same key, or of a turn that ended before its agent died. None for most futures.
    """
    refusal: WouldDeadlock | None = None
    """The error for the circle of waits that the caller would have closed; the command is then not begun. None in all
    other cases.
    """

    def __init__(
        self,
        waits_for: str | None = None,
        make: Callable[[Any], T] | None = None,
        cancel: Callable[[], object] | None = None,
        late: str = MAY_HAPPEN,
        why: Callable[[], str] = lambda: "",
        until: Until = Until.TURN,
        awaits: WaitTarget | None = None,
        timeout: float | None = None,
        rescue: Callable[[BaseException], object] | None = None,
    ) -> None:
        """Make an open future.

        Args:
            waits_for: uuid of an agent whose turn must end before the value can come; the provider of that agent may
                not wait for it.
            make: converts the argument of `settle` to the value.
            cancel: called when an `await` of the future is cancelled, to end the work for it; None for a command, which
                cannot be cancelled.
            late: the end of the message of `TimedOut`, about the fate of the request.
            why: returns a sentence about the awaited event, which `TimedOut` adds; empty when it is not known.
            until: the point that the agent must reach.
            awaits: the agents that the future waits for, in place of ``waits_for``.
            timeout: seconds that `get` and ``await`` wait when they are given none; None waits forever.
            rescue: takes an exception, and returns the argument for `settle` in its place: a value, or the exception
                itself.
        """
        super().__init__()
        self._timeout = timeout if timeout is None else check_timeout(timeout)
        self._value: Promise[T] = Promise(may_cancel=cancel is not None)  # Promise[T]() takes five times as long
        if cancel is not None:
            self._value.add_done_callback(lambda value: cancel() if value.cancelled() else None)
        self._waits_for = waits_for
        self._awaits = AwaitedAgent(waits_for, self._value.done) if waits_for is not None else awaits
        self._until = until
        self._make, self._rescue = make, rescue
        self._late, self._why = late, why
        self.take_back: Callable[[], object] = _nothing
        """Takes back what was asked for, when the caller is refused and another process was asked."""

    def __repr__(self) -> str:
        return f"<Future {'done' if self._value.done() else 'open'}>"

    def within(self, timeout: float | None) -> Self:
        """Set how many seconds `get` and ``await`` wait when they are given none; return the same future."""
        self._timeout = check_timeout(timeout)
        return self

    def get(self, *, timeout: float | None = None) -> T:
        """Wait for the value and return it, or raise the exception that came instead.

        Args:
            timeout: seconds to wait; 0 looks once. None waits for the timeout of the call that gave the future, else
                forever.

        Raises:
            BadInput: the timeout is no number of seconds.
            TimedOut: the value did not come in time.
            WouldDeadlock: this is a thread of the runtime; or the awaited agent waits for the calling one.
            WouldWaitForItself: the calling agent's own turn must end first.
        """
        timeout = self._timeout if timeout is None else check_timeout(timeout)
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if self._value.done():
            return self._value.result()
        refuse_to_block()
        self._check_itself()
        if self._awaits is None or acting_code.get(None) is None:
            return self._waited(self._value, timeout)
        with self._noted(waits=timeout != 0) as value:
            return self._waited(value, timeout)

    def _waited(self, value: Promise[T], timeout: float | None) -> T:
        try:
            with lent():
                return current_threads().result(value, timeout)
        except TimeoutError as error:
            if value.done():  # the value is itself a TimeoutError
                raise
            raise self._too_late(timeout) from error

    def _too_late(self, timeout: float | None) -> TimedOut:
        return TimedOut(f"No answer within {timeout} s; {self._late} {self._why()}".rstrip())

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value and return it, as `get` does. ``concurrent.futures`` has the method under this name."""
        return self.get(timeout=timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the outcome; return the exception, or None for a value. Raises the errors of `get` about waiting."""
        try:
            self.get(timeout=timeout)
        except Exception as error:
            if not self.done():  # this call failed, not what was asked for
                raise
            return error
        return None

    def add_done_callback(self, callback: "Callable[[Future[T]], object]") -> None:
        """Call ``callback`` with this future once it is done; at once if it is done already.

        The callback runs on the thread that settles the future, usually one of the runtime, and must not wait for
        anything. An exception that it raises is logged.
        """
        check_callable(callback, "callback", "a function of a future")
        self._value.add_done_callback(lambda _: callback(self))

    def check_wait(self) -> None:
        """Raise `WouldDeadlock` or `WouldWaitForItself` if a wait of the caller for the value would never end."""
        refuse_to_block()
        self._check_itself()
        if acting_code.get(None) is not None:
            with self._noted():
                pass

    def set(self, value: T | None = None) -> None:
        """Set the value. Raises `queue.Full` if the future is settled already, as Pykka's futures do."""
        try:
            self._value.set_result(value)  # type: ignore[arg-type]  # Pykka declares the value optional
        except concurrent.futures.InvalidStateError as error:
            raise queue.Full from error

    def set_exception(
        self,
        exc_info: tuple[type[BaseException] | None, BaseException | None, TracebackType | None] | None = None,
    ) -> None:
        """Set the exception that `get` raises: the one in ``exc_info``, or the one being handled."""
        kind, error, _ = exc_info or sys.exc_info()
        if error is None:
            error = kind() if kind is not None else RuntimeError("set_exception() without an exception")
        try:
            self._value.set_exception(error)
        except concurrent.futures.InvalidStateError as invalid:
            raise queue.Full from invalid

    def done(self) -> bool:
        """Return whether the future has a value or an exception."""
        return self._value.done()

    def cancel(self) -> bool:
        """Cancel the future of a wait or a read; return whether it was cancelled.

        The future of a command cannot be cancelled.
        """
        return self._value.cancel()

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self._value.cancelled()

    def become(self, other: "Future[T]") -> None:
        """Settle this future with the outcome of another future that is done."""
        if other.cancelled():
            self.cancel()
        else:
            self.settle(other.exception() or other.get())

    def settle(self, value: Any) -> None:
        """Settle the future with a value or an exception; does nothing if the future is settled already."""
        if isinstance(value, BaseException) and not isinstance(value, Repeated) and self.doubted is not None:
            doubted, self.doubted = self.doubted, None
            doubted(value)
            return
        if self.keyed is not None and isinstance(value, Repeated):
            value = self.keyed[1](value.gave)
        if self._rescue is not None and isinstance(value, BaseException):
            value = self._rescue(value)
        if self._make is not None and not isinstance(value, BaseException):
            try:
                value = self._make(value)
            except Exception as error:  # no value can be made of it: the caller gets it
                value = error
        try:
            if isinstance(value, BaseException):
                self._value.set_exception(value)
            else:
                self._value.set_result(value)
        except concurrent.futures.InvalidStateError:
            pass  # it has a value

    def __await__(self) -> Generator[Any, None, T]:
        """Wait without blocking the event loop, as long as `get` does. A wait that is cancelled cancels no command."""
        if self._get_hook is not None:
            return asyncio.get_running_loop().run_in_executor(None, self.get).__await__()
        self._check_itself()
        return self._awaiting()

    __iter__ = __await__

    def _awaiting(self) -> Generator[Any, None, T]:
        with self._noted() as value:
            if value.done():
                return value.result()
            if self._timeout is None:
                return (yield from _on_loop(value).__await__())
            return (yield from self._in_time(_on_loop(value), asyncio.timeout(self._timeout)).__await__())

    async def _in_time(self, value: asyncio.Future[T], limit: asyncio.Timeout) -> T:
        try:
            async with limit:
                return await value
        except TimeoutError as error:
            if not limit.expired():  # the value is itself a TimeoutError
                raise
            raise await in_thread(lambda: self._too_late(self._timeout), "ikigai-why-late") from error

    @contextlib.contextmanager
    def _noted(self, waits: bool = True) -> Iterator[Promise[T]]:
        """Register a wait of the calling agent for the length of the block; yield the promise to wait for.

        Raises `WouldDeadlock` if the wait closes a circle of waits. If such a circle is found later, the promise gets
        that error.
        """
        code = acting_code.get(None)
        if code is None or self._awaits is None or not waits or self._value.done() or code.is_over():
            yield self._value
            return
        ends = Promise[T](may_cancel=True)
        self._value.add_done_callback(lambda value: _pass_on(value, ends))
        ends.add_done_callback(lambda ends: self._value.cancel() if ends.cancelled() else None)

        def refuse(error: WouldDeadlock) -> None:
            self.refusal = error
            try:
                self.take_back()
            finally:
                with contextlib.suppress(concurrent.futures.InvalidStateError):
                    ends.set_exception(error)

        def is_over() -> bool:
            return code.is_over() or ends.done()

        wait = OpenWait(code.agent, self._awaits, WaitedBy.CODE, self._until, is_over, refuse)
        try:
            with code.registry.noted(wait):
                yield ends
        except WouldDeadlock as error:
            self.refusal = error
            raise

    def _check_itself(self) -> None:
        actor = acting_agent.get(None)
        if (
            self._waits_for is not None
            and actor is not None
            and actor.uuid == self._waits_for
            and not self._value.done()
        ):
            raise WouldWaitForItself(
                "The agent whose code this is would wait for the end of its own turn. "
                'A function that is to fork its own agent returns [ToolCall("fork", {"prompt": "..."})] instead; '
                "anything else is for another agent to do, or for after the turn."
            )


def _nothing() -> None:
    """The default for ``cancel``, which does nothing."""


def _pass_on(value: Promise[T], to: Promise[T]) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        if value.cancelled():
            to.cancel()
        elif (error := value.exception()) is not None:
            to.set_exception(error)
        else:
            to.set_result(value.result())


def _on_loop(value: Promise[T]) -> asyncio.Future[T]:
    """Return a future of the running event loop with the outcome of a promise. Cancelling it cancels the promise."""
    loop = asyncio.get_running_loop()
    here: asyncio.Future[T] = loop.create_future()

    def pass_on() -> None:
        if here.done():  # cancelled meanwhile
            return
        if value.cancelled():
            here.cancel()
        elif (error := value.exception()) is not None:
            here.set_exception(error)
        else:
            here.set_result(value.result())

    def wake(value: Promise[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(pass_on)

    here.add_done_callback(lambda here: value.cancel() if here.cancelled() else None)
    value.add_done_callback(wake)
    return here
