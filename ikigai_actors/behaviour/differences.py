"""The differences between a recorded turn and its replay. Pure.

Calls are aligned in order, except the calls of one reply, which have no order. A call in the place of another call
differs by its ``tool`` or its ``arguments``; an unaligned call is ``missing`` or ``extra``. Then follow the steering
messages before which the replay ended (``word``), and the end of the turn (``end``) or its answer (``text``). A call
that the replay did not reach is not missing, but cut off.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from ikigai_actors.behaviour.turns import ANSWERED, Turn, TurnCall


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a recorded turn and its replay."""

    position: int
    """The position of the recorded message that differs."""
    what: str
    """The kind: ``tool``, ``arguments``, ``missing``, ``extra``, ``word`` (steering message), ``end`` or ``text``."""
    recorded: Any
    """The recorded tool name, arguments, call, end or text, by kind; None if nothing was recorded."""
    replayed: Any
    """The corresponding value of the replay; None if there is none."""

    def __str__(self) -> str:
        return f"{self.position} {self.what}: {as_words(self.recorded)} → {as_words(self.replayed)}"


def differences(recorded: Turn, again: Turn) -> tuple[Difference, ...]:
    """Return the differences between a turn and its replay, in the order of the recorded turn."""
    result = [*_of_calls(recorded, again), *_of_words(recorded, again)]
    if recorded.how != again.how:
        result.append(Difference(recorded.end, "end", recorded.how, again.how))
    elif recorded.how == ANSWERED and recorded.text != again.text:
        result.append(Difference(recorded.end, "text", recorded.text, again.text))
    return tuple(result)


def compared(calls: Sequence[TurnCall], ignore: Mapping[str, Sequence[str]] | None = None) -> list[tuple[str, str]]:
    """Return the names and arguments of calls in the form in which turns are compared; calls of one reply are sorted.

    Args:
        calls: the calls.
        ignore: arguments not to compare, by tool.
    """
    left_out = ignore or {}
    keys = [(call.position, call.name, _arguments(call, left_out.get(call.name, ()))) for call in calls]
    return [(name, arguments) for _, name, arguments in sorted(keys)]


def as_words(value: Any) -> str:
    """Return a value of a difference as text for people: strings unchanged, all else as JSON."""
    return "nothing" if value is None else value if isinstance(value, str) else _as_json(value)


def _of_calls(recorded: Turn, again: Turn) -> list[Difference]:
    then, now = _sorted(recorded.calls), _sorted(again.calls)
    cut = again.how != ANSWERED
    differences: list[Difference] = []
    matcher = SequenceMatcher(None, compared(recorded.calls), compared(again.calls), autojunk=False)
    for tag, low, high, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        both = min(high - low, last - first)
        for call, other in zip(then[low:high], now[first:last], strict=False):
            if call.name == other.name:
                differences.append(Difference(call.position, "arguments", call.input, other.input))
            else:
                differences.append(Difference(call.position, "tool", call.name, other.name))
        if not (cut and last == len(now)):
            differences += (Difference(call.position, "missing", _call(call), None) for call in then[low + both : high])
        place = then[high].position if high < len(then) else recorded.end
        differences += (Difference(place, "extra", None, _call(other)) for other in now[first + both : last])
    return differences


def _of_words(recorded: Turn, again: Turn) -> list[Difference]:
    positions = {word.data.get("from") for word in again.words}
    return [
        Difference(word.position, "word", word.text, not_given(number))
        for number, word in enumerate(recorded.words, 1)
        if word.position not in positions
    ]


def not_given(number: int) -> str:
    """Return the text for a recorded steering message that the trial ended too early to get."""
    return f"word {number} not given"


def _sorted(calls: Sequence[TurnCall]) -> list[TurnCall]:
    return sorted(calls, key=lambda call: (call.position, call.name, _arguments(call, ())))


def _arguments(call: TurnCall, ignored: Sequence[str]) -> str:
    return _as_json({name: value for name, value in call.input.items() if name not in ignored})


def _call(call: TurnCall) -> str:
    return f"{call.name} {_as_json(call.input)}"


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
