"""A call that waits for a person, with all its arguments. Pure.

    described_call(call)    write {"file_path": "note.txt", "content": "Lyon"}

    described_call(call)    edit:
                                file_path: plan.md
                                - of oak
                                + of pine

A person who approves a call approves all of it. So nothing is cut, blanks stay as they are, and invisible characters
are spelled out.
"""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from enum import StrEnum
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.calls import CHANGED, EXACT, TOOL, PendingCall
from ikigai_actors.verbs.text.harmless import as_json, one_line

SHORT = 300
"""The most characters of a call on one line."""

_AROUND = 3
"""The number of lines of a file that are shown before and after an edit."""

_MOST_COMPARED = 2_000
"""The most lines of two texts that are compared: more would take long."""


class CallPart(StrEnum):
    """The kinds of lines in the page of a call."""

    TEXT = "text"
    OLD = "old"
    """A line that an edit removes."""
    NEW = "new"
    SAME = "same"
    """A line in an edit that stays unchanged."""


class CallLine(NamedTuple):
    """A line in the page of a call."""

    text: str
    part: CallPart = CallPart.TEXT

    def __str__(self) -> str:
        """Return the line after a sign for its kind: ``-`` removed, ``+`` added, blank otherwise."""
        return {CallPart.OLD: "- ", CallPart.NEW: "+ ", CallPart.SAME: "  "}.get(self.part, "") + self.text


def described_call(call: PendingCall, text: str | None = None) -> str:
    """Describe a call: on one line if it is short; else, or if the ``text`` of its file is known, on several lines."""
    line = call_line(call)
    if len(line) <= SHORT and text is None and not call.former:
        return line
    return "\n    ".join([f"{visible(call.tool)}:", *map(str, call_page(call, text))])


def edited_file(call: PendingCall) -> str | None:
    """Return the path of the file that a call edits; None for any other call."""
    arguments = call.input
    texts = [arguments.get(name) for name in ("file_path", "old_string", "new_string")]
    return str(texts[0]) if all(isinstance(text, str) for text in texts) else None


def call_line(call: PendingCall) -> str:
    """Return the whole call on one line: the tool, and its arguments as JSON."""
    return f"{visible(call.tool)} {visible(as_json(dict(call.input)))}"


def call_subject(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the subject of a call on one line: the command, or the file, or else all arguments."""
    subject = arguments.get("command" if tool == "bash" else "file_path")
    if isinstance(subject, str):
        return one_line(subject)
    values = (value if isinstance(value, str) else as_json(value) for value in arguments.values())
    return "  ".join(f"{one_line(name)}: {one_line(value)}" for name, value in zip(arguments, values, strict=True))


def call_page(call: PendingCall, text: str | None = None) -> list[CallLine]:
    """Return the lines of a call: its arguments, a text with all its lines, and an edit as a difference.

    Args:
        call: the call.
        text: the contents of the edited file; then the lines around the edit are shown, too.
    """
    return [*_change(call), *input_page(call.input, text)]


def _change(call: PendingCall) -> Iterator[CallLine]:
    """Yield lines about how the tool has changed since a person was asked about the same call."""
    if not call.former:
        return
    yield CallLine(CHANGED)
    parts = {"-": CallPart.OLD, "+": CallPart.NEW, " ": CallPart.SAME}
    for line in call.change.split("\n"):
        part = parts.get(line[:1], CallPart.TEXT)
        yield CallLine(visible(line if part is CallPart.TEXT else line[1:]), part)
    yield CallLine("It is called with:")


def whole_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call with all its arguments: on one line, or on several below the name of the tool."""
    lines = [str(line) for line in input_page(arguments)]
    return f"{visible(tool)}  {lines[0]}" if len(lines) == 1 else "\n".join([visible(tool), *lines])


def input_page(call_input: Mapping[str, Any], text: str | None = None) -> list[CallLine]:
    """Return the lines of a call's arguments; ``text`` is as for `call_page`."""
    arguments = dict(call_input)
    old, new = arguments.get("old_string"), arguments.get("new_string")
    if isinstance(old, str) and isinstance(new, str):
        rest = {name: value for name, value in arguments.items() if name not in ("old_string", "new_string")}
        lines = [*map(CallLine, _arguments(rest)), *_edit(old, new, arguments.get("replace_all") is True, text or "")]
    elif len(arguments) == 1 and isinstance(command := arguments.get("command"), str):
        lines = [*map(CallLine, command.split("\n"))]
    else:
        lines = [*map(CallLine, _arguments(arguments))]
    return [CallLine(visible(line.text), line.part) for line in lines]


def visible(text: str) -> str:
    """Return a text with invisible characters, including newlines, spelled out."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else _spelled(sign) for sign in text)


def _arguments(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        if isinstance(value, str) and "\n" in value:
            yield f"{name}:"
            yield from (f"    {line}" for line in value.split("\n"))
        else:
            yield f"{name}: {value if isinstance(value, str) else as_json(value)}"


def _edit(old: str, new: str, everywhere: bool, text: str) -> Iterator[CallLine]:
    """Yield the lines of an edit as a difference; if the file has the old text, with the surrounding lines."""
    old, new, text = (part.replace("\r\n", "\n") for part in (old, new, text))
    at = text.find(old) if old else -1
    if at < 0:
        yield from _difference(old.split("\n"), new.split("\n"))
        return
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at + len(old))
    end = len(text) if end < 0 else end
    after = text[start:at] + new + text[at + len(old) : end]
    yield CallLine(f"at line {text.count(chr(10), 0, start) + 1}:")
    yield from (CallLine(line, CallPart.SAME) for line in text[:start].split("\n")[:-1][-_AROUND:])
    yield from _difference(text[start:end].split("\n"), after.split("\n"))
    yield from (
        CallLine(line, CallPart.SAME) for line in text[end + 1 :].split("\n", _AROUND)[:_AROUND] if end < len(text)
    )
    if everywhere and (more := text.count(old) - 1):
        yield CallLine(f"and the same in {more} more {'place' if more == 1 else 'places'}")


def _difference(old: list[str], new: list[str]) -> Iterator[CallLine]:
    """Yield the lines of both texts, marked as removed, added or unchanged."""
    size = len(old) + len(new)
    if size > _MOST_COMPARED or old == new:
        yield from (CallLine(line, CallPart.OLD) for line in old)
        yield from (CallLine(line, CallPart.NEW) for line in new)
        return
    parts = {"-": CallPart.OLD, "+": CallPart.NEW, " ": CallPart.SAME}
    compared = unified_diff(old, new, lineterm="", n=size)
    yield from (CallLine(line[1:], parts[line[0]]) for line in list(compared)[3:])


def _spelled(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def answers(call: PendingCall) -> str:
    """Return the keys that answer a question, with their effects."""
    match call.always[-1:]:
        case ("tool",):
            return f"y runs it, n does not, a runs {visible(call.tool)} always"
        case ("exact",):
            return "y runs it, n does not, a runs this command always"
    return "y runs it, n does not"


def change_note(call: PendingCall) -> str:
    """Return a note that a tool has changed since an earlier question; empty when it has not."""
    return f"{CHANGED}\n{call.change}" if call.former else ""


def always_option(call: PendingCall) -> str:
    """Return the option by which an approval of a call also allows later calls."""
    return {TOOL: " --always", EXACT: " --exact"}[call.always[-1]]


def always_words(call: PendingCall) -> str:
    """Return, in words, the later calls that an approval with `always_option` allows; empty if there are none."""
    return {EXACT: "this command", TOOL: visible(call.tool)}.get(call.always[-1] if call.always else "", "")
