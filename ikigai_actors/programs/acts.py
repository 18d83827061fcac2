"""Acts: the requests of a program, as futures of their outcomes, and the functions that wait for several acts.

A plain function gets values at once. A coroutine awaits the same acts. Each wait is written once, as a generator that
yields where it waits; `ProgramFrame.waited` runs it in a plain function, and a coroutine hands it to its driver.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.arguments import check_timeout
from ikigai_actors.errors import BadInput, StepFailed
from ikigai_actors.programs.frames import ActWaiting, ProgramFrame, acting_frame, current_frame
from ikigai_actors.programs.records import (
    ASK_ACT,
    FORK_ACT,
    PROMPT_ACT,
    STEP_AGAIN,
    STEP_BY_KEY,
    STEP_ONCE,
    WAIT_ACT,
    ActOutcome,
    act_digest,
)
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.mail.asked import AskedTurn, turn_name
from ikigai_actors.tools.effect_keys import current_call

T = TypeVar("T")


class ProgramAct(Future[Any]):
    """An act that a program has asked for: a future of its outcome."""

    def __init__(
        self, frame: ProgramFrame, name: str, arguments: Mapping[str, Any], run: Callable[[], Any] | None = None
    ) -> None:
        """Record the act in the frame; `get` or ``await`` waits for the outcome.

        For a step, ``run`` calls the function.
        """
        super().__init__()
        frame.check_alive()
        self.frame, self.name, self.arguments, self.run = frame, name, arguments, run
        self.line = frame.line()
        digest = act_digest(name, arguments)
        self.id = f"{digest}-{frame.count(digest)}"
        self.outcome: ActOutcome | None = frame.take_record(self.id)
        frame.add(self)

    @property
    def is_driven(self) -> bool:
        """Return whether the act belongs to a coroutine, which awaits the act."""
        return self.frame.is_driven

    def get(self, *, timeout: float | None = None) -> Any:
        """Wait for the outcome, and return its value.

        Raises:
            StepFailed: the act has failed.
            StepChanged: the function asks for something other than the log of its turn has.
            BadInput: the function is a coroutine, which must await the act instead; or this kind of act takes no
                time-out.
        """
        return self.frame.waited(self.waiting(timeout))

    def result(self, timeout: float | None = None) -> Any:
        return self.get(timeout=timeout)

    def __await__(self) -> Generator[Any, None, Any]:
        return self.waiting()

    def done(self) -> bool:
        return self.outcome is not None

    def waiting(self, timeout: float | None = None) -> ActWaiting[Any]:
        """Return a generator that waits for the outcome, and returns its value."""
        if timeout is not None:
            raise BadInput("Only a prompt can be waited for with a time-out, as its child goes on.")
        outcome = yield from self.outcome_waited()
        return self.made(outcome)

    def outcome_waited(self) -> ActWaiting[ActOutcome]:
        """Return a generator that waits for the outcome, and returns its record."""
        while self.outcome is None:
            yield self.frame
        self.frame.check_alive()
        self.frame.reached(self.outcome)
        return self.outcome

    def made(self, outcome: ActOutcome) -> Any:
        """Return the value for the program from an outcome. Raises `StepFailed` for an error."""
        if outcome.is_error:
            raise StepFailed(outcome.text, self.id)
        return self.value(outcome.text)

    def value(self, text: str) -> Any:
        """Convert the text of a successful result to the value that the program gets."""
        return json.loads(text)


class ForkAct(ProgramAct):
    """The fork of a child by a program. The outcome is the handle of the child."""

    def __init__(self, frame: ProgramFrame, arguments: Mapping[str, Any], handle: Callable[[str], Any]) -> None:
        """Ask for a fork; ``handle`` makes the handle of an agent from its uuid."""
        super().__init__(frame, FORK_ACT, arguments)
        self._handle = handle

    def value(self, text: str) -> Any:
        return self._handle(text.partition(" ")[0])  # under a budget, what is left of it follows


class VerbAct(ProgramAct):
    """A command of a handle that is committed in one unit with its result."""

    _make: Callable[[Any], Any]

    def __init__(
        self,
        frame: ProgramFrame,
        name: str,
        arguments: Mapping[str, Any],
        make: Callable[[Any], Any] = lambda outcome: outcome,
    ) -> None:
        """Record the act; arguments that are None are left out.

        ``make`` makes the value for the program from the result.
        """
        super().__init__(frame, name, {key: value for key, value in arguments.items() if value is not None})
        self._make = make

    def value(self, text: str) -> Any:
        made: Any = self._make(json.loads(text))
        return made


class KeyedAct(ProgramAct):
    """A command of a program that another agent carries out. The id of the call is the key by which it is done once."""

    _make: Callable[[Any], Any]

    def __init__(
        self,
        frame: ProgramFrame,
        verb: str,
        values: Sequence[Any],
        run: Callable[[str], Any],
        make: Callable[[Any], Any],
    ) -> None:
        """Record the act.

        ``run`` carries it out under a key, and returns a JSON value, from which ``make`` makes the program's value.
        """
        asked = {"function": verb, "args": list(values), "kwargs": {}}
        super().__init__(frame, STEP_BY_KEY, asked, lambda: run(current_call().key))
        self._make = make

    def value(self, text: str) -> Any:
        made: Any = self._make(json.loads(text))
        return made


class AgainAct(ProgramAct):
    """A command that another agent carries out, and that may be repeated, because a repeat changes nothing."""

    def __init__(self, frame: ProgramFrame, verb: str, arguments: Sequence[Any], run: Callable[[], Any]) -> None:
        super().__init__(frame, STEP_AGAIN, {"function": verb, "args": list(arguments), "kwargs": {}}, run)


def program_frame(verb: str, **others: Any) -> ProgramFrame | None:
    """Return the frame of the program that calls a method of a handle here; None outside of a program.

    Raises `BadInput` when one of the ``others`` is set, because the acts of a program take no key and no time-out.
    """
    frame = acting_frame.get()
    if frame is not None and (names := [name for name, value in others.items() if value is not None]):
        raise BadInput(f"Expected no {names[0]} for {verb}() in a program: what it does is done once anyway.")
    return frame


def write_act(arguments: Mapping[str, Any]) -> VerbAct | None:
    """Return the act by which a program writes a document; None outside of a program.

    Raises the errors of `program_frame`.
    """
    frame = program_frame("write", key=arguments["key"], timeout=arguments["timeout"])
    asked = {name: arguments[name] for name in ("path", "body", "expect", "author")}
    return None if frame is None else VerbAct(frame, "document_write", asked)


class AskAct(ProgramAct):
    """A question of a program to a person. The outcome is the answer."""

    def __init__(self, frame: ProgramFrame, arguments: Mapping[str, Any]) -> None:
        super().__init__(frame, ASK_ACT, arguments)

    def made(self, outcome: ActOutcome) -> Any:
        if outcome.denied:
            return False if self.arguments["form"]["type"] == "boolean" else None
        return super().made(outcome)

    def value(self, text: str) -> Any:
        return text if self.arguments["form"]["type"] == "string" else json.loads(text)


class PromptAct(ProgramAct):
    """A prompt of a program to another agent. The outcome is the reply."""

    def __init__(self, frame: ProgramFrame, arguments: Mapping[str, Any], typed: Callable[[Reply], Reply]) -> None:
        """Record the act; ``typed`` converts the output of a reply to the requested type."""
        super().__init__(frame, PROMPT_ACT, arguments)
        self._typed = typed
        self._end: Mapping[str, Any] | None = None
        self._wait = ""

    def turn_waited(self) -> ActWaiting[str]:
        """Return a generator that waits until the prompt was sent, and returns the name of the turn that it opens."""
        outcome = yield from self.outcome_waited()
        return turn_name(AskedTurn(self.arguments["agent"], int(super().made(outcome))))

    def waiting(self, timeout: float | None = None) -> ActWaiting[Reply]:
        if self._end is None:
            yield from _ends_waited([self], 1, timeout)
        if self._end is None:
            raise TimedOut(f"No answer within {timeout} s; the turn goes on.")
        return self.reply()

    def reply(self) -> Reply:
        """The reply, once the turn is over. Raises `StepFailed` when it has ended without one."""
        assert self._end is not None
        if "error" in self._end:
            raise StepFailed(self._end["error"], self._wait)
        end = self._end
        return self._typed(Reply(end["text"], stop_reason=end["stop_reason"], output=end.get("output")))

    def done(self) -> bool:
        return self._end is not None

    def ends(self, end: Mapping[str, Any], wait: str) -> None:
        """Store the end of the turn, which the wait with the id ``wait`` has returned."""
        self._end, self._wait = end, wait


class ActsTogether(Generic[T]):
    """Several acts that a coroutine awaits together, by awaiting this object."""

    def __init__(self, waiting: Callable[[], ActWaiting[T]]) -> None:
        self._waiting = waiting

    def __await__(self) -> Generator[Any, None, T]:
        return self._waiting()


class GatheredActs(list[T]):
    """The outcomes of acts, as a list. In a coroutine the list is empty, and must be awaited for the outcomes."""

    def __init__(self, waiting: Callable[[], ActWaiting[list[T]]]) -> None:
        frame = current_frame("gather()")
        super().__init__([] if frame.is_driven else frame.waited(waiting()))
        self._waiting = waiting

    def __await__(self) -> Generator[Any, None, list[T]]:
        return self._waiting()


def gather(*acts: Future[T]) -> GatheredActs[T]:
    """Do several acts at the same time; return their outcomes as a list, in the order of the acts.

    A coroutine awaits this.

    Raises:
        StepFailed: an act has failed.
        BadInput: an argument is not an act of this program.
    """
    asked = _checked(acts)

    def waiting() -> ActWaiting[list[T]]:
        prompts = [act for act in asked if isinstance(act, PromptAct) and not act.done()]
        yield from _ends_waited(prompts, len(prompts))
        for act in asked:
            yield from act.outcome_waited()
        return [_value(act) for act in asked]

    return GatheredActs(waiting)


def first(*acts: Future[Any], timeout: float | None = None) -> Any:
    """Return the prompt that is answered first, and its reply; the other turns go on. A coroutine awaits this.

    Args:
        acts: prompts. To wait for the next reply, leave out the prompts that were answered.
        timeout: seconds to wait; None waits forever.

    Raises:
        StepFailed: the first turn to end has ended without a reply.
        TimedOut: no reply came in time.
        BadInput: an argument is no prompt of a program, or there are no arguments.
    """
    asked = _checked(acts)
    prompts = [act for act in asked if isinstance(act, PromptAct)]
    if not prompts or len(prompts) < len(asked):
        raise BadInput("Expected prompts of a program, one at least.")

    def waiting() -> ActWaiting[tuple[PromptAct, Reply]]:
        come = [prompt for prompt in prompts if prompt.done()]
        if not come:
            come = yield from _ends_waited(prompts, 1, timeout)
        if not come:
            raise TimedOut(f"No answer within {timeout} s; the turns go on.")
        return come[0], come[0].reply()

    frame = current_frame("first()")
    return ActsTogether(waiting) if frame.is_driven else frame.waited(waiting())


def step(function: Callable[..., Any], *args: Any, idempotent: "bool | str" = False, **kwargs: Any) -> Any:
    """Call a function once, and record its value. After a crash the program gets the recorded value.

    A coroutine awaits this.

    Args:
        function: a plain function. In it, ``current_call().key`` names the call, with the same key in every attempt.
        args: the arguments of the function, as JSON values.
        idempotent: what happens after a crash has cut the call off. False raises `StepFailed`, since the call may have
            been done; True calls the function again; ``"by_key"`` also calls it again, and declares that the service
            recognises the key.
        kwargs: further arguments of the function.

    Returns:
        The function's value, converted to JSON and back.

    Raises:
        StepFailed: the function has raised, or was cut off.
        NoCurrentAgent: the caller is no program.
        BadInput: the arguments cannot be stored.
    """
    frame = current_frame("step(); elsewhere call the function: it")
    names = {False: STEP_ONCE, True: STEP_AGAIN, "by_key": STEP_BY_KEY}
    if not callable(function) or idempotent not in names:
        raise BadInput(
            f"Expected a function and idempotent as False, True or 'by_key'; got {function!r}, {idempotent!r}."
        )
    module = getattr(function, "__module__", None) or type(function).__module__
    called = f"{module}.{getattr(function, '__qualname__', type(function).__name__)}"
    arguments = {"function": called, "args": list(args), "kwargs": kwargs}
    act = ProgramAct(frame, names[idempotent], arguments, lambda: function(*args, **kwargs))
    return act if frame.is_driven else act.get()


def now() -> datetime:
    """Return the time of the latest result that the program has used, or else of its prompt.

    A run after a crash gets the same.

    Raises `NoCurrentAgent`.
    """
    return current_frame("now()").time


def random() -> float:
    """Return a random number from 0 up to 1. A run after a crash gets the same number. Raises `NoCurrentAgent`."""
    return current_frame("random()").random.random()


def sleep_act(frame: ProgramFrame, seconds: float) -> ProgramAct:
    """Make the act by which a program waits for a time in seconds."""
    return _Sleep(frame, WAIT_ACT, {"turns": [], "need": 0, "timeout": seconds})


class _Sleep(ProgramAct):
    def value(self, text: str) -> None:
        return None


def _ends_waited(prompts: Sequence[PromptAct], need: int, timeout: float | None = None) -> ActWaiting[list[PromptAct]]:
    """Return a generator that waits until ``need`` turns are over, and returns their prompts in order of end."""
    if not prompts:
        return []
    turns: dict[str, PromptAct] = {}
    for prompt in prompts:
        turns[(yield from prompt.turn_waited())] = prompt
    limit = {} if timeout is None else {"timeout": check_timeout(timeout)}
    wait = ProgramAct(prompts[0].frame, WAIT_ACT, {"turns": list(turns), "need": need, **limit})
    ends = yield from wait.waiting()
    for end in ends:
        turns[end["turn"]].ends(end, wait.id)
    return [turns[end["turn"]] for end in ends]


def _value(act: ProgramAct) -> Any:
    """Return the value of an act with an outcome; of a prompt, the reply of its ended turn. Raises `StepFailed`."""
    if isinstance(act, PromptAct):
        return act.reply()
    assert act.outcome is not None
    return act.made(act.outcome)


def _checked(acts: Sequence[Any]) -> list[ProgramAct]:
    if wrong := [act for act in acts if not isinstance(act, ProgramAct)]:
        raise BadInput(f"Expected what a program has asked for, as a prompt gives it; got {wrong[0]!r}.")
    return list(acts)
