"""A call that waits for a person, with all that it would do. Pure.

    described_call(call)    write {"file_path": "note.txt", "content": "Lyon"}

    described_call(call)    edit:
                                file_path: plan.md
                                - of oak
                                + of pine

You sign all of a call that you approve. So nothing is cut, blanks stay as they are, and characters that cannot be seen
are spelled out.
"""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.shell.text.harmless import as_json

SHORT = 300
"""The most characters of a call on one line."""

_MOST_COMPARED = 2_000
"""The most lines of two texts that are compared: more would take long."""


def described_call(call: PendingCall) -> str:
    """A call: on one line if it is short, else with its page below."""
    line = call_line(call)
    return line if len(line) <= SHORT else "\n    ".join([f"{visible(call.tool)}:", *call_page(call)])


def call_line(call: PendingCall) -> str:
    """The whole call on one line: the tool, and its arguments as JSON."""
    return f"{visible(call.tool)} {visible(as_json(dict(call.input)))}"


def call_page(call: PendingCall) -> list[str]:
    """The lines of a call: its arguments, a text with all its lines, and an edit as a difference."""
    given = dict(call.input)
    old, new = given.get("old_string"), given.get("new_string")
    if isinstance(old, str) and isinstance(new, str):
        rest = {name: value for name, value in given.items() if name not in ("old_string", "new_string")}
        lines = [*_arguments(rest), *_difference(old.split("\n"), new.split("\n"))]
    elif len(given) == 1 and isinstance(command := given.get("command"), str):
        lines = command.split("\n")
    else:
        lines = [*_arguments(given)]
    return [visible(line) for line in lines]


def visible(text: str) -> str:
    """A text in which every character can be seen: those that cannot, newlines too, are spelled out."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else _spelled(sign) for sign in text)


def _arguments(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if isinstance(value, str) and "\n" in value:
            yield f"{name}:"
            yield from (f"    {line}" for line in value.split("\n"))
        else:
            yield f"{name}: {value if isinstance(value, str) else as_json(value)}"


def _difference(old: list[str], new: list[str]) -> Iterator[str]:
    """All lines of both texts, each after a sign: ``-`` goes, ``+`` comes, and the others stay."""
    size = len(old) + len(new)
    if size > _MOST_COMPARED or old == new:
        yield from (f"- {line}" for line in old)
        yield from (f"+ {line}" for line in new)
        return
    compared = unified_diff(old, new, lineterm="", n=size)
    yield from (f"{line[0]} {line[1:]}" for line in list(compared)[3:])


def _spelled(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def answers(call: PendingCall) -> str:
    """The keys that answer a question, with what they do."""
    match call.always[-1:]:
        case ("tool",):
            return f"y runs it, n does not, a runs {visible(call.tool)} always"
        case ("exact",):
            return "y runs it, n does not, a runs this command always"
    return "y runs it, n does not"
