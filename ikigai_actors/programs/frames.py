"""One call of a program's function, for one turn of its agent, and the acts that it asks for.

    unknown     the function has asked for it, and nobody has waited yet
    asked       a reply with its call is committed
    known       its result is committed: the function has the outcome

A frame has a thread, which sleeps while results are awaited. The provider takes from it what the function asks for
next, or its answer. A second frame for the same turn begins with what the log holds.

An act is known again by its kind, the digest of its arguments, and how many of the same came before it in the turn.
That is the id of its call. Its place does not count. Where the function waits for an act that the log does not hold,
while the log holds one that nobody has asked for, the function is another one than before: `StepChanged`.

A frame whose turn is over is dropped. Then the function is unwound by a `BaseException`, and each further act on the
way raises that again.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple, TypeVar

from ikigai_actors.actors.futures import Future, TimedOut, acting_agent
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.arguments import check_timeout
from ikigai_actors.errors import BadInput, NoCurrentAgent, StepChanged, StepFailed
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.mail.asked import AskedTurn, turn_name

STEP_ONCE, STEP_AGAIN, STEP_BY_KEY, WAIT_ACT, FORK_ACT, PROMPT_ACT = (
    "step", "step_again", "step_by_key", "wait", "fork", "prompt",
)  # fmt: skip
"""The names of a program's calls."""

MOST_RECORDED = 40_000
"""The most characters of a step's result, as JSON."""

_SHOWN = 80

T = TypeVar("T")

acting_frame: ContextVar["ProgramFrame | None"] = ContextVar("acting_frame", default=None)
"""The frame whose function runs in this context."""


class ActOutcome(NamedTuple):
    """The result of an act, as the log holds it."""

    text: str
    is_error: bool
    place: int = 0
    """The position of the message."""


class AskedCalls(NamedTuple):
    """The calls that a function asks for."""

    calls: tuple[ToolCall, ...]


class FunctionAnswer(NamedTuple):
    """The value that a function has returned."""

    value: Any


class _TurnOver(BaseException):
    """Unwinds a function whose turn is over."""


class ProgramAct(Future[Any]):
    """Something that a program has asked for: a future of its outcome."""

    def __init__(
        self, frame: "ProgramFrame", name: str, given: Mapping[str, Any], run: Callable[[], Any] | None = None
    ) -> None:
        """Ask for it; `get` waits. ``run`` does it, where it is a step."""
        super().__init__()
        frame.check_alive()
        self.frame, self.name, self.given, self.run = frame, name, given, run
        self.line = frame.line()
        digest = act_digest(name, given)
        self.id = f"{digest}-{frame.count(digest)}"
        self.outcome: ActOutcome | None = frame.take_record(self.id)
        frame.add(self)

    def get(self, *, timeout: float | None = None) -> Any:
        """Wait for the outcome, and return it. Raises `StepFailed`, and `StepChanged`. No act has a time-out here."""
        while self.outcome is None:
            self.frame.wait()
        if self.outcome.is_error:
            raise StepFailed(self.outcome.text, self.id)
        return self.made(self.outcome.text)

    def result(self, timeout: float | None = None) -> Any:
        return self.get(timeout=timeout)

    def done(self) -> bool:
        return self.outcome is not None

    def made(self, text: str) -> Any:
        """The value of a result that is no error."""
        return json.loads(text)


class ForkAct(ProgramAct):
    """A child that is forked; its outcome is the handle."""

    def __init__(self, frame: "ProgramFrame", given: Mapping[str, Any], handle: Callable[[str], Any]) -> None:
        """Ask for it; ``handle`` makes the handle of an agent."""
        super().__init__(frame, FORK_ACT, given)
        self._handle = handle

    def made(self, text: str) -> Any:
        return self._handle(text)


class PromptAct(ProgramAct):
    """A prompt to another agent; its outcome is the reply."""

    def __init__(self, frame: "ProgramFrame", given: Mapping[str, Any], typed: Callable[[Reply], Reply]) -> None:
        """Ask for it; ``typed`` gives the output of a reply its type."""
        super().__init__(frame, PROMPT_ACT, given)
        self._typed = typed
        self._end: Mapping[str, Any] | None = None
        self._wait = ""

    @property
    def turn(self) -> str:
        """The turn that it opens, for a wait."""
        return turn_name(AskedTurn(self.given["agent"], super().get()))

    def get(self, *, timeout: float | None = None) -> Any:
        """Wait for the reply. Raises `StepFailed` when the turn has ended without one, and `TimedOut`."""
        if self._end is None:
            wait_together([self], timeout=timeout)
        if self._end is None:
            raise TimedOut(f"No answer within {timeout} s; the turn goes on.")
        if "error" in self._end:
            raise StepFailed(self._end["error"], self._wait)
        return self._typed(
            Reply(self._end["text"], stop_reason=self._end["stop_reason"], output=self._end.get("output"))
        )

    def done(self) -> bool:
        return self._end is not None

    def ends(self, end: Mapping[str, Any], wait: str) -> None:
        """Take the end of the turn, which the wait with this id has brought."""
        self._end, self._wait = end, wait


def gather(*acts: Future[T]) -> list[T]:
    """The outcomes of what was asked for, in order; it is done together.

    Raises:
        StepFailed: one of them has failed.
        BadInput: one of them is nothing that a program has asked for.
    """
    if wrong := [one for one in acts if not isinstance(one, ProgramAct)]:
        raise BadInput(f"Expected what a program has asked for, as a prompt gives it; got {wrong[0]!r}.")
    wait_together([one for one in acts if isinstance(one, PromptAct) and not one.done()])
    return [one.get() for one in acts]


def wait_together(prompts: Sequence[PromptAct], need: int | None = None, timeout: float | None = None) -> None:
    """Wait until this many of the turns of prompts are over, or all, in one wait."""
    if not prompts:
        return
    turns = {one.turn: one for one in prompts}
    limit = {} if timeout is None else {"timeout": check_timeout(timeout)}
    needed = len(turns) if need is None else need
    wait = ProgramAct(prompts[0].frame, WAIT_ACT, {"turns": list(turns), "need": needed, **limit})
    for end in wait.get():
        turns[end["turn"]].ends(end, wait.id)


def step(function: Callable[..., Any], *args: Any, idempotent: "bool | str" = False, **kwargs: Any) -> Any:
    """Call a function once, and remember its value, which the program gets after a crash.

    Args:
        function: a plain function. ``current_call().key`` in it names the call, the same in every attempt.
        args: its arguments, which JSON can hold.
        idempotent: what follows where a crash has cut the call off: False says that it may have been done, and raises
            `StepFailed`; True calls again; ``"by_key"`` does so too, and says that a service knows the key.
        kwargs: further arguments.

    Returns:
        Its value, as JSON has it.

    Raises:
        StepFailed: the function has raised, or was cut off.
        NoCurrentAgent: this is no program.
        BadInput: the arguments cannot be stored.
    """
    if (frame := acting_frame.get()) is None:
        raise NoCurrentAgent("step() works inside a program; elsewhere call the function.")
    names = {False: STEP_ONCE, True: STEP_AGAIN, "by_key": STEP_BY_KEY}
    if not callable(function) or idempotent not in names:
        raise BadInput(
            f"Expected a function and idempotent as False, True or 'by_key'; got {function!r}, {idempotent!r}."
        )
    called = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"
    given = {"function": called, "args": list(args), "kwargs": kwargs}
    return ProgramAct(frame, names[idempotent], given, lambda: function(*args, **kwargs)).get()


class ProgramFrame:
    """One call of a program's function."""

    def __init__(
        self, me: Any, turn: int, function: Callable[[str], Any], task: str, file: str | None, records: "TurnRecords"
    ) -> None:
        """Call the function for a turn, on a thread of its own.

        Args:
            me: the handle of the agent.
            turn: the message that opened the turn.
            file: where the function is written.
            records: what the log of the turn holds.
        """
        self.me, self.turn, self._file, self._records = me, turn, file, records
        self.acts: dict[str, ProgramAct] = {}
        self._seen: Counter[str] = Counter()
        self._fresh: list[ProgramAct] = []
        self._awaited: set[str] = set()
        self._over = False
        threads = current_threads()
        self._replies, self._results = threads.queue(), threads.queue()
        context = copy_context()
        context.run(acting_frame.set, self)
        context.run(acting_agent.set, me)
        threads.thread(lambda: context.run(self._run, function, task), f"program {me.uuid}").start()

    def next(self) -> AskedCalls | FunctionAnswer | BaseException:
        """Wait for what the function asks for next: calls; or for its answer, or what it has raised."""
        found: AskedCalls | FunctionAnswer | BaseException = self._replies.get()
        return found

    def takes(self, came: Mapping[str, ActOutcome]) -> bool:
        """Give the function results, if these are what it waits for; return whether they are."""
        if not self._awaited or not self._awaited <= came.keys():
            return False
        self._awaited = set()
        self._results.put(came)
        return True

    def drop(self) -> None:
        """Unwind the function."""
        self._over = True
        self._results.put(None)

    # On the function's thread

    def check_alive(self) -> None:
        """Unwind a function whose turn is over."""
        if self._over:
            raise _TurnOver

    def count(self, digest: str) -> int:
        """How many of the same came before."""
        self._seen[digest] += 1
        return self._seen[digest] - 1

    def take_record(self, call: str) -> ActOutcome | None:
        """A call as the log holds it."""
        return self._records.results.pop(call, None)

    def add(self, act: ProgramAct) -> None:
        """Note an act, which is asked for when the function waits."""
        self.acts[act.id] = act
        if act.outcome is None:
            self._fresh.append(act)

    def line(self) -> int:
        """The line of the function's file that runs now."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return 0 if frame is None else int(frame.f_lineno)

    def wait(self) -> None:
        """Have the acts that are fresh committed and done; return when their results are there."""
        self.check_alive()
        left = self._records.results
        if self._fresh and left:
            act = self._fresh[0]
            asked = f"line {act.line} asks for {shown_call(act.name, act.given)}, which this turn does not hold"
            raise StepChanged(
                f"{self._records.why} {asked}, and nothing asks for {self._records.name(next(iter(left)))}."
            )
        self._awaited = {one.id for one in self._fresh}
        self._replies.put(AskedCalls(tuple(ToolCall(one.name, one.given, one.id) for one in self._fresh)))
        self._fresh = []
        came = self._results.get()
        if came is None:
            raise _TurnOver
        for call in came.keys() & self.acts.keys():
            self.acts[call].outcome = came[call]

    def _run(self, function: Callable[[str], Any], task: str) -> None:
        try:
            value = function(task)
            if left := self._records.results:
                raise StepChanged(
                    f"{self._records.why} it has returned, and nothing asks for {self._records.name(next(iter(left)))}."
                )
            self._replies.put(FunctionAnswer(value))
        except _TurnOver:
            pass
        except BaseException as error:
            self._replies.put(error)


class TurnRecords:
    """The acts of a program that the log of a turn holds."""

    def __init__(self, messages: Sequence[Any], version: str) -> None:
        """Read them from the messages of the turn; ``version`` is that of the function now."""
        self.results: dict[str, ActOutcome] = {}
        self._calls: dict[str, tuple[str, int]] = {}
        made_by = ""
        for one in messages:
            match one.kind:
                case "assistant":
                    made_by = one.data.get("made_by") or made_by
                    for call in one.data.get("tool_calls") or ():
                        self._calls[call["id"]] = shown_call(call["name"], call["input"]), one.id
                case "tool_result":
                    failed = bool(one.data.get("is_error"))
                    self.results[one.data["tool_use_id"]] = ActOutcome(one.content, failed, one.id)
                case "error" if one.content.endswith("]"):
                    self.results.pop(one.content[one.content.rindex("[") + 1 : -1], None)  # it is asked for again
        same = made_by in ("", version)
        self.why = "The function is the same, and did something else:" if same else "The function was changed:"

    def name(self, call: str) -> str:
        """A call in words."""
        shown, place = self._calls.get(call, (call, 0))
        return f"{shown} at message {place}"


def shown_call(name: str, given: Mapping[str, Any]) -> str:
    """A call in words: ``step(publish, ["tea"])``."""
    text = json.dumps(given, ensure_ascii=False)
    return f"{name}({text if len(text) <= _SHOWN else text[:_SHOWN] + '…'})"


def act_digest(name: str, given: Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of an act. Raises `BadInput` for what JSON cannot hold."""
    try:
        text = json.dumps([name, given], sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"Expected what JSON can hold as arguments of {name}: {error}.") from error
    return hashlib.sha256(text.encode()).hexdigest()[:16]
