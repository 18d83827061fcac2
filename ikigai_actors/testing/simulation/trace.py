"""The trace of a simulation: its events step by step, and the story made from them for a person.

    run      an actor handles a message
    commit   a transaction: the messages and mails that were written, and every other statement that changed rows
    ask      a request is sent to a provider; `reply`, `tool` and `result` are the other exchanges with the outside
    crash    the process ends at this point; `open` begins the next process
    time     the virtual clock is advanced
    call     a line of the test waits for an answer

The same choices give the same trace, byte for byte. The trace contains no memory addresses, no real times and no thread
names that could differ. The trace shows uuids; the story shows names instead.
"""

import linecache
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.providers.base import Reply, Request, Spent
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.words import words_of

_LENGTH = 80
"""The most lines of a story; lines before them are counted."""

_UUID = re.compile(r"(?<![\w-])[A-Za-z0-9][\w-]{21}(?![\w-])")


class TraceLine(NamedTuple):
    """One event of the trace: its kind and its text."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind:<7} {self.text}"


class Trace:
    """The events of a run so far, as lines."""

    def __init__(self) -> None:
        self.lines: list[TraceLine] = []

    def note(self, kind: str, text: str) -> None:
        """Add an event to the trace."""
        self.lines.append(TraceLine(kind, text))

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))


class Traced(Instrument):
    """An instrument that writes the traffic of agents with the outside into a trace."""

    def __init__(self, note: Callable[[str, str], object]) -> None:
        """Write to a trace; ``note`` takes the kind and the text of a line."""
        self._note = note

    def request_begins(self, agent: Tally, request: Request) -> None:
        last = request.messages[-1]["content"][-1] if request.messages else {}
        self._note("ask", f"{request.agent}: {len(request.messages)} messages, {str(last.get('text', last))!r}")

    def request_ends(self, agent: Tally, answer: Reply | Exception | None, spent: Spent | None) -> None:
        if isinstance(answer, Reply):
            calls = "".join(f" +{call.name}{dict(call.input)}" for call in answer.tool_calls)
            self._note("reply", f"to {agent.uuid}: {answer.text!r}{calls}")

    def tool_begins(self, agent: Tally, tool: str, call: str, arguments: Mapping[str, Any]) -> None:
        self._note("tool", f"{tool} {dict(arguments)}")

    def tool_ends(self, agent: Tally, tool: str, call: str, result: str | None) -> None:
        if result is not None:
            self._note("result", f"{tool}: {result!r}")


def calling_line() -> str:
    """Return the line of the test that has called the runtime and waits; empty when no test code has."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _RUNTIME:
            break
        frame = frame.f_back
    if module in _RUNTIME or module in _RUNNERS:
        return ""
    file = frame.f_code.co_filename
    return f"{PurePath(file).name}:{frame.f_lineno}: {linecache.getline(file, frame.f_lineno).strip()}"


_RUNTIME = ("ikigai_actors", "supervisors", "pykka", "contextlib", "concurrent", "asyncio", "threading")
_RUNNERS = ("hypothesis", "_pytest", "pytest", "pluggy", "runpy", "unittest")


def story(lines: Sequence[TraceLine], names: Mapping[str, str]) -> str:
    """Return the story of a run for a person: the trace without single messages of actors, and with names for uuids."""
    texts = [str(line) for line in lines if line.kind != "run"]
    before = [] if len(texts) <= _LENGTH else [f"… {len(texts) - _LENGTH} lines before"]
    return _UUID.sub(lambda match: names.get(match[0], words_of(match[0])), "\n".join([*before, *texts[-_LENGTH:]]))


def names_of(records: Sequence[AgentRecord]) -> dict[str, str]:
    """Return the names of agents for a story: their names, or their two generated words; agent 0 is ``root``."""
    return {record.uuid: "root" if record.parent_uuid is None else record.short for record in records}


def tree(records: Sequence[AgentRecord]) -> str:
    """Return the tree of agents as text, children under their supervisors, including the dead."""
    names, below = names_of(records), dict[str | None, list[AgentRecord]]()
    for record in records:
        below.setdefault(record.supervisor_uuid, []).append(record)

    def lines(above: str | None, indent: str) -> list[str]:
        drawn = []
        for record in below.get(above, ()):
            turn = ", in a turn" if record.turn else ""
            why = f": {record.exit_reason}" if record.exit_reason else ""
            drawn.append(f"{indent}{names[record.uuid]} ({record.status}{turn}{why})")
            drawn += lines(record.uuid, indent + "  ")
        return drawn

    return "\n".join(lines(None, ""))
