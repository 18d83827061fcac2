"""One call of a program's function, for one turn of its agent, and the acts that it asks for.

    unknown     the function has asked for the act, and has not waited for it yet
    asked       a reply with the act's call is committed
    known       the act's result is committed: the function has the outcome

A plain function has a thread, which sleeps while results are awaited. A coroutine has no thread: the thread that asks
for its next act drives it, and it awaits nothing but acts. The provider takes the next acts of the
function from the frame, or its answer. A second frame for the same turn begins with the acts in the log.

A later run recognises an act by its kind, the digest of its arguments, and the number of equal acts before it in the
turn. These make up the id of its call. The order of different acts does not matter. If the function waits for an act
that the log does not have, while the log has a call that the function has not asked for, the function has changed:
`StepChanged`.

A frame whose turn is over is dropped. Then a `BaseException` unwinds the function, and each further act raises it
again. So no part of the function runs on, and its ``finally`` blocks have no effect outside.
"""

import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping
from contextlib import suppress
from contextvars import ContextVar, copy_context
from datetime import datetime
from queue import Empty
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from ikigai_actors.actors.futures import acting_agent
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.errors import BadInput, NoCurrentAgent, StepChanged
from ikigai_actors.programs.changes import GO_ON, goes_on_without
from ikigai_actors.programs.records import ActOutcome, TurnRecords
from ikigai_actors.providers.base import ToolCall
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.text import utc_time

T = TypeVar("T")

acting_frame: ContextVar["ProgramFrame | None"] = ContextVar("acting_frame", default=None)
"""The frame of the function that runs in this context; None outside of a program."""


class AskedCalls(NamedTuple):
    """The calls that a program's function makes before it waits."""

    calls: tuple[ToolCall, ...]
    note: str = ""
    """A text that names the recorded calls that the function has not asked for; empty for none."""


class FunctionAnswer(NamedTuple):
    """The value that a function has returned."""

    value: Any


class FrameAct(Protocol):
    """An act of a program, as its frame needs it."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    line: int
    outcome: ActOutcome | None
    run: Callable[[], Any] | None


class _TurnOver(BaseException):
    """Unwinds a function whose turn is over."""


Reached = AskedCalls | FunctionAnswer | BaseException
"""The next event of a function: acts for which it waits, its answer, or the exception that it raises."""

AHEAD_FOR = 0.1
"""The most seconds for which the commit of a result is delayed until the function asks for its next act, so that both
are one unit.
"""


class FrameAhead(NamedTuple):
    """A result that a function got before its commit, and the acts that followed from it."""

    call: str
    outcome: ActOutcome
    reached: Reached | None
    """The next event of the function; None if there was none yet."""


ActWaiting = Generator["ProgramFrame", None, T]
"""A piece of code that yields its frame wherever it waits for acts; see `ProgramFrame.waited`."""


def current_frame(what: str) -> "ProgramFrame":
    """Return the frame of the function that runs here.

    Raises `NoCurrentAgent`, with ``what`` as the name of the caller.
    """
    if (frame := acting_frame.get()) is None:
        raise NoCurrentAgent(f"{what} works inside a program.")
    return frame


def refuse_in_program() -> None:
    """Raise `BadInput` in a program: the caller is no act, so each replay would repeat it."""
    if acting_frame.get() is not None:
        raise BadInput(
            "Expected an act of a program: this would be done again whenever the program goes on after a crash. Put it "
            "into a function, and call that by step(function, …)."
        )


class ProgramFrame:
    """One run of a program's function, for one turn of its agent."""

    def __init__(
        self,
        me: Any,
        turn: int,
        opening: Message,
        function: Callable[[str], Any],
        file: str | None,
        records: TurnRecords,
        on_change: str,
    ) -> None:
        """Start the function for a turn.

        Args:
            me: the handle of the agent.
            turn: the position of the turn's first message, or of the birth of an agent that was forked in the turn.
            opening: the prompt that has opened the turn.
            function: a plain function, which gets its own thread, or a coroutine function.
            file: the path of the function's source file.
            records: the acts in the log of the turn.
            on_change: what happens when the function asks for other acts than the log has (see `changes`).
        """
        self.on_change = on_change
        self.me, self.turn, self._file, self._records, self._time = me, turn, file, records, opening.created_at
        self.acts: dict[str, FrameAct] = {}
        self.random = Random(f"{opening.agent_uuid} {opening.id}")  # a fork in mid-turn draws what its lead has drawn
        task = opening.content
        self._seen: Counter[str] = Counter()
        self._fresh: list[FrameAct] = []
        self._unknown: dict[str, FrameAct] = {}  # those that have no outcome yet
        self._awaited: set[str] = set()
        self.ahead: FrameAhead | None = None
        """The result with which the function has gone on before it is committed."""
        self._over = False
        self._changed: StepChanged | None = None
        self._value: tuple[Any, ...] = ()  # that of a coroutine which has returned
        self._thread = 0  # the one that runs the function
        context = self._context = copy_context()
        context.run(acting_frame.set, self)
        context.run(acting_agent.set, me)
        self.is_driven = inspect.iscoroutinefunction(function)
        if self.is_driven:
            self._coroutine: Coroutine[Any, Any, Any] = context.run(function, task)
            return
        threads = current_threads()
        self._replies, self._results = threads.queue(), threads.queue()
        threads.thread(lambda: context.run(self._run, function, task), f"program {me.uuid}").start()

    def next(self) -> Reached:
        """Wait for the next event of the function: its next calls, its answer, or the exception that it raised."""
        ahead, self.ahead = self.ahead, None
        if ahead is not None and ahead.reached is not None:
            return ahead.reached
        reached: Reached = self._drive() if self.is_driven else self._replies.get()
        return reached

    def waits_for(self, calls: Collection[str]) -> bool:
        """Return whether the function waits for the results of calls, all of which are among these."""
        return bool(self._awaited) and self._awaited <= set(calls)

    def go_ahead(self, call: str, outcome: ActOutcome) -> None:
        """Give the function a result that is not committed yet, and wait a moment for its next acts.

        The result and the next calls are then one unit. If the function takes longer, the result is committed by
        itself. A function that waits for further results, and a coroutine, which would block this thread, get the
        result after its commit.
        """
        if self.is_driven or self._awaited != {call}:
            return
        self._awaited = set()
        self.ahead = FrameAhead(call, outcome, None)
        self._results.put({call: outcome})
        with suppress(Empty):
            self.ahead = FrameAhead(call, outcome, self._replies.get(timeout=AHEAD_FOR))

    def takes(self, came: Mapping[str, ActOutcome]) -> bool:
        """Give the function these results, if they include all for which it waits; return whether they do."""
        ahead = self.ahead
        if ahead is not None and (known := came.get(ahead.call)) is not None:  # it has gone on with that
            return known._replace(place=0) == ahead.outcome
        self.ahead = None
        if not self._awaited or not self._awaited <= came.keys():
            return False
        self._awaited = set()
        self._records.results.update({call: came[call] for call in came.keys() - self.acts.keys()})
        if self.is_driven:
            self._learn(came)
        else:
            self._results.put(came)
        return True

    def drop(self) -> None:
        """Unwind the function, because its turn is over."""
        if self._over:
            return
        self._over = True
        if not self.is_driven:
            self._results.put(None)
        elif self._awaited or not self._thread:  # it stands still, and nobody drives it
            current_threads().thread(self._unwind, f"program {self.me.uuid}").start()

    # Where the function runs

    def check_alive(self) -> None:
        """Unwind the function if its turn is over.

        Raises `BadInput` on a thread that the function itself has started.
        """
        if self._over:
            raise _TurnOver
        if threading.get_ident() != self._thread:
            raise BadInput(
                "An act of a program came from another thread than that of its function, which waits for it."
            )

    def count(self, digest: str) -> int:
        """Return how many acts with the same digest came before this act in the turn."""
        self._seen[digest] += 1
        return self._seen[digest] - 1

    def take_record(self, call: str) -> ActOutcome | None:
        """Take the outcome of a call from the log of the turn; None if the log has none."""
        return self._records.results.pop(call, None)

    def add(self, act: FrameAct) -> None:
        """Note an act. Its call is sent when the function waits."""
        self.acts[act.id] = act
        if act.outcome is None:
            self._fresh.append(act)
            self._unknown[act.id] = act

    def reached(self, outcome: ActOutcome) -> None:
        """Note the time of an outcome that the function has used: `time` does not go back before it."""
        self._time = max(self._time, outcome.at)

    @property
    def time(self) -> datetime:
        """Return the time of the latest result that the function has used; at first the time of the prompt."""
        return utc_time(self._time)

    def line(self) -> int:
        """Return the number of the line in the function's file that runs now."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return 0 if frame is None else int(frame.f_lineno)

    def waited(self, waiting: ActWaiting[T]) -> T:
        """Run code that waits for acts, and return its value. The thread of a plain function blocks meanwhile.

        Raises `BadInput` when the function is a coroutine function.
        """
        try:
            while True:
                next(waiting)
                if self.is_driven:
                    raise BadInput("A program that is a coroutine awaits its acts: write await before it.")
                self._wait()
        except StopIteration as done:
            value: T = done.value
            return value

    def _wait(self) -> None:
        """Let the runtime commit and carry out the new acts; return when their results are there."""
        self.check_alive()
        self._replies.put(self._ask())
        came = self._results.get()
        if came is None:
            raise _TurnOver
        self._learn(came)

    def _learn(self, came: Mapping[str, ActOutcome]) -> None:
        for call in came.keys() & self._unknown.keys():
            self._unknown.pop(call).outcome = came[call]

    def _ask(self) -> AskedCalls:
        """Return the calls of the new acts, when the function begins to wait. Raises `StepChanged`."""
        unheard = [call for call in self._fresh if call.id not in self._records.open]
        note = goes_on_without(self._records.unasked(self.acts)) if unheard and self.on_change == GO_ON else ""
        if unheard and self.on_change != GO_ON and (left := self._records.left(self.acts)) is not None:
            act = unheard[0]
            self._changed = StepChanged(self._records.asks(act.line, act.name, act.arguments, left))
            raise self._changed
        self._awaited = set(self._unknown)
        asked = AskedCalls(tuple(ToolCall(call.name, call.arguments, call.id) for call in self._fresh), note)
        self._fresh = []
        return asked

    def _returned(self, value: Any) -> FunctionAnswer | StepChanged:
        if self._changed is not None:
            return self._changed
        if self.on_change != GO_ON and (left := self._records.left(self.acts)) is not None:
            return StepChanged(self._records.sentence("it has returned", left))
        return FunctionAnswer(value)

    def _run(self, function: Callable[[str], Any], task: str) -> None:
        self._thread = threading.get_ident()
        try:
            value = function(task)
            if self._fresh:  # it has asked for that, and does not wait for it
                self._wait()
            self._replies.put(self._returned(value))
        except _TurnOver as over:
            self._replies.put(over)  # who asked what comes next may still wait for that
        except BaseException as error:
            self._replies.put(self._changed or error)

    def _drive(self) -> Reached:
        """Run the coroutine up to where it waits for acts, by hand: it has no thread, and no event loop."""
        self._thread, thrown = threading.get_ident(), None
        while True:
            if self._over:
                self._unwind()
                return _TurnOver()
            if self._value:
                return self._returned(*self._value)
            try:
                if thrown is None:
                    got = self._context.run(self._coroutine.send, None)
                else:
                    got = self._context.run(self._coroutine.throw, thrown)
                if got is self and not self._over:
                    asked: AskedCalls = self._context.run(self._ask)
                    return asked
                thrown = BadInput(f"A program awaits its acts and nothing else; got {got!r}. Put it into a step.")
            except StopIteration as done:
                self._value = (done.value,)
                if self._fresh:
                    return self._asked_last()
            except BaseException as error:
                return self._changed or error

    def _asked_last(self) -> Reached:
        """Return the calls that the ended coroutine asked for without awaiting them, or a `StepChanged`."""
        try:
            return self._ask()
        except StepChanged as error:
            return error

    def _unwind(self) -> None:
        with suppress(BaseException):  # of its own code, on the way out
            self._context.run(self._coroutine.throw, _TurnOver())
        with suppress(BaseException):
            self._context.run(self._coroutine.close)
