"""Finding tools: a request describes only some tools, and the model finds the others. Pure.

A request has the five calls of `ALWAYS_THERE`, the agent's own functions and its workspace. The call ``find_tools``
finds the rest. The found tools are recorded only in ``data.found`` of its result. So the set is the same after a fork,
after a restart and on another host, and an undo removes it. A summary records the tools that were found before its cut.
While a summary is in force, ``recall`` is sent too, since references name it.

    always      tools that each request describes, sorted
    kept        found tools that the summary in force records: each request describes them, too
    shown       found tools that visible results name: a service may load a tool at the result that names it

Found tools are appended: the descriptions sent before do not change, so a service's cache stays valid. Finding a tool
is a matter of context, not of rights: a tool that was not found runs, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ikigai_actors.agent.turn.elision import RECALL
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.log.history import View
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.questions.waiting import ASK_PERSON

ALWAYS_THERE = frozenset({"fork", "wait", "send", "read_mail", FIND_TOOLS})
"""The built-in calls that every request describes."""

FOUND_NAMES = "found"
"""The key, in the data of a result or a summary, of the names of the tools that were found."""

FOUND_SKILLS = "found_skills"
"""The key, in the data of a result, of the end of its text, which names skills.

Services that take only the names of tools as the result get it as a text after the results.
"""


TOOL_GROUPS: Mapping[str, Mapping[str, str]] = {
    "documents": {
        "document_write": "save store create edit update publish share note notes file plan report wiki",
        "document_read": "open show view get shared note notes file text wiki",
        "document_list": "which show find enumerate all shared notes files",
        "document_delete": "remove erase shared note file",
    },
    "timers": {
        "remind": (
            "reminder timer alarm cron schedule recurring repeat periodic daily weekly hourly every later tomorrow "
            "date time sleep wake clock"
        ),
        "cancel_reminder": "timer alarm cron schedule stop remove delete",
        "monitor": "watch notify notification informed when dies died dead finishes",
    },
    "tree": {
        "agents": "which who list show running subagent status tree self identity name",
        "kill": "stop terminate abort cancel remove child subagent running",
        "rename": "change call nickname title",
        "exit": "finish done complete quit return report stop myself",
        "merge": "take over include adopt integrate work child results",
        "diff": "compare difference changes history histories two branches done",
        "grant": "give more increase allocate add extend budget tokens money limit quota child",
    },
    "people": {ASK_PERSON: "human user question form input confirm confirmation clarify clarification decide approval"},
    "groups": {
        "join_group": "broadcast multicast topic channel subscribe member send message several many agents",
        "leave_group": "broadcast topic channel unsubscribe quit member",
    },
    "memory": {
        RECALL: "remember look up search retrieve earlier past original old conversation summarized",
        "compact": "compress shorten reduce summarize summary free space context window memory conversation",
    },
    "mail": {"check_mail": "mailbox inbox new message messages how many count peek"},
}
"""The built-in calls that must be found, by group and name, each with further words by which a query may find it.

Tools of a group are found together.
"""


class FoundTools(NamedTuple):
    """The tools that an agent has found, each once, in the order in which they are sent."""

    kept: tuple[str, ...] = ()
    """The tools that the summary in force keeps."""
    shown: tuple[str, ...] = ()
    """The tools named by results that the model sees."""

    @property
    def all(self) -> tuple[str, ...]:
        """All found tools, those that a summary keeps first."""
        return (*self.kept, *self.shown)


NOTHING_FOUND = FoundTools()


class Findings(Protocol):
    """The part of a log that shows which tools a model has found; see `ikigai_actors.records.log.log.Log`."""

    @property
    def finds_nothing(self) -> bool:
        """Whether `finds` is known to return nothing for any position."""

    def view(self, position: int) -> View:
        """Return the view of the history up to a position."""

    def opening(self, position: int) -> tuple[Message | None, Message | None]:
        """Return the summary whose text is shown, and the prompt that was open at that time."""

    def finds(self, position: int) -> Iterator[Message]:
        """Return the messages of the visible history that find tools or load skills, newest first."""


def found_in(log: Findings, head: int, new: Iterable[Message] = ()) -> FoundTools:
    """Return the tools that were found in the visible part of a history.

    Args:
        head: the position of the history's latest message.
        new: messages that follow it, and are not in the log yet.
    """
    if log.finds_nothing and not any(FOUND_NAMES in message.data for message in new) and log.view(head).lens is None:
        return NOTHING_FOUND
    summary, _ = log.opening(head)
    recall = [RECALL] if log.view(head).lens is not None else []
    kept = tuple(dict.fromkeys([*recall, *(named_in(summary.data) if summary is not None else ())]))
    results = [*reversed(list(log.finds(head))), *new]
    shown = dict.fromkeys(name for result in results for name in named_in(result.data))
    return FoundTools(kept, tuple(name for name in shown if name not in kept))


def named_in(data: Mapping[str, Any]) -> list[str]:
    """Return the names of found tools in the data of a message. Entries that are no text are left out."""
    named = data.get(FOUND_NAMES)
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def mates_of(name: str) -> tuple[str, ...]:
    """Return the tools that are found together with a tool, the tool included."""
    return next((tuple(group) for group in TOOL_GROUPS.values() if name in group), (name,))


def words_about(described: Mapping[str, Any]) -> str:
    """Return the words by which a tool is found: its name, its group's name, further words, its description."""
    name = str(described["name"])
    further = next((f"{title} {group[name]}" for title, group in TOOL_GROUPS.items() if name in group), "")
    return f"{name} {further} {described.get('description') or ''}".lower().replace("_", " ")
