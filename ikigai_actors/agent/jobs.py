"""Jobs of the executor: coroutines on the event loop, or functions on threads, each with a callback.

A cancelled job calls no callbacks any more, neither with an outcome nor with a delta. The same holds for the jobs of an
agent from the commit of its death on, before its actor cancels them: see `Permit`. Every value or exception of other
people's code, even `SystemExit`, becomes the outcome of its job. Only a cancellation by the runtime ends a job without
an outcome.
"""

import asyncio
import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from ikigai_actors.actors.threads import TriedToEnd, tried_to_end
from ikigai_actors.arguments import a_value
from ikigai_actors.errors import BadInput, IkigaiError, ProviderError, WouldDeadlock, WouldWaitForItself
from ikigai_actors.providers.base import Delta, Exit, OnDelta, Reply
from ikigai_actors.providers.checked import NoReply, checked_delta
from ikigai_actors.records.messages.pieces import ReplyPiece
from ikigai_actors.text import causes, described
from ikigai_actors.tools.function import Result, cut

logger = logging.getLogger(__name__)

A = TypeVar("A")
OnResult = Callable[[Result], None]


@dataclass(frozen=True, slots=True)
class Crash:
    """The outcome of a model request when the agent's own code, a function as its model, has failed."""

    error: Exception


ModelAnswer = Reply | ProviderError | Exit | Crash
OnReply = Callable[[ModelAnswer], None]


class Permit:
    """The permission of one actor to reach the world: models, tools, hooks and approvers.

    The death of the agent ends it at the commit, before anybody gets the acknowledgement, so no job of the agent begins
    after that. The actor handles the death later, when a worker is free.
    """

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False
        """Whether the agent is dead. Any thread may read and set it."""


_FOREVER = Permit()


class Job(ABC, Generic[A]):
    """A coroutine on the event loop, or a function on a thread, with a callback for its outcome. It can be cancelled.

    The work is other people's code, so it may return or raise anything.
    """

    __slots__ = ("_lock", "_loop", "_on_end", "_over", "_permit", "task")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_end: Callable[[A], None], permit: Permit | None = None
    ) -> None:
        """Make a job, which is not begun. ``permit`` is the permission of the agent; None for one that never ends."""
        self._loop, self._permit = loop, permit or _FOREVER
        self._on_end = on_end
        self._lock = threading.Lock()
        self._over = False
        self.task: asyncio.Task[None] | None = None
        """The task in which it runs, once it was begun."""

    def cancel(self) -> None:
        """Cancel the job. No callback is called after this. A thread for which the job waits runs on."""
        if self._ends():
            with contextlib.suppress(RuntimeError):  # the loop is closed: all that was on it is cancelled
                self._loop.call_soon_threadsafe(self._cancel_task)

    def begin(self, coroutine: Coroutine[Any, Any, A], done: Callable[[Any], None], name: str) -> None:
        """Start the job; called on the loop.

        Args:
            coroutine: its result is the outcome.
            done: called when no part of the job is left on the loop.
            name: a name for people: the work, and the agent for which it is done.
        """
        self.task = self._loop.create_task(self._unless_over(coroutine), name=name)
        self.task.add_done_callback(lambda _: coroutine.close())  # it may never have begun
        self.task.add_done_callback(done)

    def _ends(self) -> bool:
        """Mark the job as over; return True for the first caller only."""
        with self._lock:
            over, self._over = self._over, True
        return not over

    def is_over(self) -> bool:
        """Whether the job was cancelled, or has called back, or its agent is dead."""
        return self._over or self._permit.ended

    def _cancel_task(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _unless_over(self, coroutine: Coroutine[Any, Any, A]) -> None:
        if self.is_over():  # asked at the last moment: what was cancelled on its way must not reach the world
            return
        try:
            end = await coroutine
        except BaseException as error:
            if self.is_over():  # a cancellation of ours, or what it led to: nobody listens
                return
            end = self._failed(error)
        self.pass_on(end)

    def run(self, work: Callable[[], A | None]) -> A | None:
        """Do the job at once on the calling thread, which other people's code may then occupy.

        Returns the outcome, for `pass_on`; None when the job goes on elsewhere, or was cancelled.
        """
        if self.is_over():
            return None
        try:
            return work()
        except BaseException as error:
            return None if self.is_over() else self._failed(error)

    def pass_on(self, end: A) -> None:
        """Call the callback of the job with its outcome, unless nobody listens any more. Never waits."""
        if self._permit.ended or not self._ends():
            return
        try:
            self._on_end(end)
        except Exception as error:  # a defect of ours: what waits for the end must hear of one
            logger.exception("What came of %s was not taken", type(self).__name__)
            self._on_end(self._failed(error))

    @abstractmethod
    def _failed(self, error: BaseException) -> A:
        """The outcome of a job whose coroutine raised this error."""


class ModelRequest(Job[ModelAnswer]):
    """A request to a model, in flight. It collects the pieces of the reply."""

    __slots__ = ("_kinds", "_on_delta", "_own_code", "_texts", "agent", "at")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_delta: OnDelta,
        on_reply: OnReply,
        own_code: bool = False,
        agent: str = "",
        at: int = 0,
        permit: Permit | None = None,
    ) -> None:
        super().__init__(loop, on_reply, permit)
        self._on_delta, self._own_code = on_delta, own_code
        self.agent = agent
        """The uuid of the agent that asks."""
        self.at = at
        """The head of its history, which the reply continues; 0 when nobody is to see the reply on its way."""
        self._texts: list[str] = []
        self._kinds: list[tuple[int, str]] = []  # where among the texts another kind begins

    @property
    def text(self) -> str:
        """The text of the reply that was received so far."""
        return "".join(text for kind, text in self.pieces(0)[0] if kind == "text")

    def pieces(self, start: int) -> tuple[list[ReplyPiece], int]:
        """Return the pieces of the reply that have come after the first ``start`` deltas.

        Returns a piece for each change of kind, and the next ``start``.
        """
        end, pieces = len(self._texts), list[ReplyPiece]()
        borders = [*self._kinds, (end, "")]
        for (begin, kind), (until, _) in pairwise(borders):
            if text := "".join(self._texts[max(begin, start) : min(until, end)]):
                pieces.append((kind, text))
        return pieces, end

    def delta(self, delta: Delta) -> None:
        """Pass on a piece of the reply, unless the request is over. Raises `TypeError` if ``delta`` is no `Delta`."""
        delta = checked_delta(delta)
        with self._lock:
            if self._over:
                return
            if delta.text:
                if not self._kinds or self._kinds[-1][1] != delta.kind:
                    self._kinds.append((len(self._texts), delta.kind))
                self._texts.append(delta.text)
            self._on_delta(delta)

    def _failed(self, error: BaseException) -> ModelAnswer:
        chain = causes(error)
        cause = chain[0] if len(chain) == 1 else error  # a task group hides what it has ended with
        match cause:
            case ProviderError(partial=str(), broke_off=bool(), retry_after=int() | float() | None) if _has_text(cause):
                return cause
            case Exit(result=str()):
                return cause
            case Exit():
                result = getattr(cause, "result", None)
                error = TypeError(f"Expected the result of Exit as text, got {a_value(result)}.")
        if self._own_code and not _is_mistake(cause):
            return Crash(error if isinstance(error, Exception) else tried_to_end(error))
        return provider_failed(error if isinstance(error, Exception) else tried_to_end(error), self.text)


_MISTAKES = (NoReply, BadInput, WouldWaitForItself, TriedToEnd, StopIteration)
"""Errors that code would raise again when it is asked again: no restart mends them, so they end the turn alone."""


def _is_mistake(error: BaseException) -> bool:
    circle = isinstance(error, WouldDeadlock) and bool(error.circle)  # it would be closed again
    return circle or isinstance(error, _MISTAKES) or not isinstance(error, Exception)


class ToolRun(Job[Result]):
    """A run of a tool, in flight."""

    __slots__ = ("tool",)

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_result: OnResult, tool: str, permit: Permit | None = None
    ) -> None:
        super().__init__(loop, on_result, permit)
        self.tool = tool
        """The name of the tool."""

    def _failed(self, error: BaseException) -> Result:
        if isinstance(error, asyncio.CancelledError):
            return Result("The tool was cancelled.", True)
        logger.error("A tool failed", exc_info=error)  # against its word: the turn must go on all the same
        return Result(cut(f"The tool failed: {described(error)}"), True)


def provider_failed(error: BaseException, partial: str = "") -> ProviderError:
    """Log an unexpected error of a provider, and return the `ProviderError` that ends the turn."""
    logger.error("A provider failed", exc_info=error)
    failure = ProviderError(f"The provider failed: {described(error, _words_of_ours)}", partial)
    failure.__cause__ = error
    return failure


def _words_of_ours(error: BaseException) -> str | None:
    """Return the text of an error that explains itself; None for an error of other people's code."""
    return str(error) if isinstance(error, NoReply | TriedToEnd | IkigaiError) else None


def _has_text(error: Exception) -> bool:
    try:
        return isinstance(str(error), str)
    except Exception:  # other people's code
        return False
