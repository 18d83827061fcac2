"""The acts of a program in the log of a turn, and how a later run recognises an act. Pure.

    result      a call with a result: the act has its outcome
    open        a call of the last reply without a result, while calls are in progress: the act was asked for, and waits
    cut         a call of an earlier reply without a result: its turn has ended with an error in between. If the call
                had begun and must not be repeated, its outcome is recorded as unknown

The function may ask for the acts in any order, but it must ask for all of them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.calls import FORK, PERHAPS_RUN, WAIT
from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.questions.waiting import ASK_PERSON

STEP_ONCE, STEP_AGAIN, STEP_BY_KEY, WAIT_ACT, FORK_ACT, PROMPT_ACT, ASK_ACT = (
    "step", "step_again", "step_by_key", WAIT, FORK, "prompt", ASK_PERSON,
)  # fmt: skip
"""The names of the calls by which programs act."""

MOST_RECORDED = 256 * 1024
"""The most bytes of the arguments of an act, and of a step's result, as JSON in UTF-8."""

_SHOWN = 80


class ActOutcome(NamedTuple):
    """The result of an act, as the log holds it."""

    text: str
    is_error: bool
    place: int = 0
    """The position of the message with the result."""
    at: int = 0
    """The time at which the result was written, in milliseconds since 1970."""
    denied: bool = False
    """Whether the result is an error because somebody denied the call."""


class TurnRecords:
    """The acts of a program that the log of a turn holds."""

    def __init__(self, messages: Sequence[Message], version: str, *, is_open: bool = False) -> None:
        """Read the acts from the messages of the turn.

        Args:
            version: the version of the function that runs now.
            is_open: whether the calls of the last reply are in progress.
        """
        self.results: dict[str, ActOutcome] = {}
        self.open: set[str] = set()
        self._calls: dict[str, tuple[str, int]] = {}
        self._whole: dict[str, str] = {}  # with the modules of functions
        made_by = ""
        begun: dict[str, str] = {}
        for message in messages:
            match message.kind:
                case Kind.ASSISTANT:
                    made_by = message.data.get("made_by") or made_by
                    made = {call["id"]: shown_call(call["name"], call["input"]) for call in calls_made(message)}
                    self._calls |= {call: (shown, message.id) for call, shown in made.items()}
                    for each in calls_made(message):
                        self._whole[each["id"]] = shown_call(each["name"], each["input"], whole=True)
                    self.open = set(made)
                case Kind.TOOL_CALL:
                    begun[message.data["tool_use_id"]] = message.data["name"]
                case Kind.TOOL_RESULT:
                    self.results[message.data["tool_use_id"]] = outcome_in(message)
                case Kind.ERROR if message.content.endswith("]"):
                    # it is asked for again
                    self.results.pop(message.content[message.content.rindex("[") + 1 : -1], None)
                    begun.clear()
        self.open = (self.open - self.results.keys()) if is_open else set()
        for call in begun.keys() - self.results.keys() - self.open:
            if begun[call] == STEP_ONCE:
                self.results[call] = ActOutcome(PERHAPS_RUN, True, self._calls[call][1])
        same = made_by in ("", version)
        self._why = "The function is the same, and did something else:" if same else "The function was changed:"

    def left(self, asked: Iterable[str]) -> str | None:
        """Return the id of a recorded call that the function has not asked for; None if there is none.

        ``asked`` has the ids of the calls that it has asked for.
        """
        return next(iter([*self.results, *sorted(self.open - set(asked))]), None)

    def unasked(self, asked: Iterable[str]) -> list[str]:
        """Return the recorded calls that the function has not asked for, as texts for people.

        ``asked`` has the ids of the calls that it has asked for.
        """
        left = [*self.results, *sorted(self.open - set(asked))]
        return [
            f"{shown} at message {place}"
            for shown, place in (self._calls.get(identity, (identity, 0)) for identity in left)
        ]

    def asks(self, line: int, name: str, arguments: Mapping[str, Any], left: str) -> str:
        """Return a sentence for people: the function asks for an act that the log of this turn does not have.

        It also names a call in the log that the function has not asked for.

        Args:
            line: the line of the function that asks for the act.
            name: the name of the act's call.
            arguments: the arguments of that call.
            left: the id of the call in the log.
        """
        same = shown_call(name, arguments) == self._calls.get(left, ("", 0))[0]  # but for their modules
        act = shown_call(name, arguments, same)
        return self.sentence(f"line {line} asks for {act}, which this turn does not hold", left, whole=same)

    def sentence(self, what: str, left: str, *, whole: bool = False) -> str:
        """Return a sentence for people: the function does ``what``, and not the recorded call ``left``."""
        shown, place = self._calls.get(left, (left, 0))
        shown = self._whole.get(left, shown) if whole else shown
        return f"{self._why} {what}, and nothing asks for {shown} at message {place}."


def calls_made(reply: Message) -> list[dict[str, Any]]:
    """Return the calls that a reply makes, as dicts."""
    return reply.data.get("tool_calls") or []


def outcome_in(result: Message) -> ActOutcome:
    """Return the outcome of an act from the message with its result."""
    failed = bool(result.data.get("is_error"))
    return ActOutcome(result.content, failed, result.id, result.created_at, failed and "call_sha256" in result.data)


def latest_results(newest_first: Iterable[Message]) -> dict[str, ActOutcome]:
    """Return the outcomes after the latest reply, by the ids of their calls."""
    outcomes: dict[str, ActOutcome] = {}
    for message in newest_first:
        if message.kind == Kind.TOOL_RESULT:
            outcomes[message.data["tool_use_id"]] = outcome_in(message)
        elif message.kind == Kind.ASSISTANT:
            break
    return outcomes


def latest_calls(newest_first: Iterable[Message]) -> set[str]:
    """Return the ids of the calls of the latest reply."""
    reply = next((message for message in newest_first if message.kind == Kind.ASSISTANT), None)
    return set() if reply is None else {call["id"] for call in calls_made(reply)}


def shown_call(name: str, arguments: Mapping[str, Any], whole: bool = False) -> str:
    """Show a call in words: ``step(publish, ["tea"])``. With ``whole``, the module of the function is shown too."""
    if name in (STEP_ONCE, STEP_AGAIN, STEP_BY_KEY):
        called = str(arguments.get("function", ""))
        parts = [called if whole else called.rpartition(".")[2], *map(_as_json, arguments.get("args") or ())]
        parts += [f"{key}={_as_json(value)}" for key, value in (arguments.get("kwargs") or {}).items()]
        text = ", ".join(parts)
    else:
        text = _as_json(arguments)
    return f"{name}({text if len(text) <= _SHOWN else text[:_SHOWN] + '…'})"


def act_digest(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of an act's name and arguments.

    Raises `BadInput` if the arguments are no JSON.
    """
    try:
        text = json.dumps([name, arguments], sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"Expected what JSON can hold as arguments of {name}: {error}.") from error
    check_size(text, f"the arguments of {name}")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_recorded(value: Any) -> str:
    """Return a result as JSON text for the log. Raises `BadInput` if JSON cannot hold the value."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"Expected a result that JSON can hold: {error}.") from error
    return check_size(text, "a result")


def check_size(text: str, what: str) -> str:
    """Return the text, or raise `BadInput` if it is too long for the log. ``what`` names the text in the error."""
    if len(text) > MOST_RECORDED // 4 and (size := len(text.encode(errors="replace"))) > MOST_RECORDED:
        raise BadInput(
            f"Expected {what} to have at most {MOST_RECORDED:,} bytes as JSON; got {size:,}. "
            "Store it, and use its place."
        )
    return text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
