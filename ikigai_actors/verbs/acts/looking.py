"""Acts that look: at the tree, at histories, and at calls that wait for a decision."""

import json
from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from ikigai_actors.reach.access import Access
from ikigai_actors.reach.turns import AskingCall, SpentAmounts, call_that_asks, spent_by
from ikigai_actors.reach.views import last_activity, scrollback_of
from ikigai_actors.records.log.diff import Tail
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.text import iso_time
from ikigai_actors.verbs.act import ONLY_READS, act
from ikigai_actors.verbs.acts.turns import MOST_POSITION, Name, NamedAgent

MOST_SHOWN, MOST_AGENTS, SHOWN_LENGTH = 200, 1_000, 4_000
"""The most messages of a history and agents of a tree in an answer, and the most characters of a message."""


class AgentOfTree(TypedDict):
    """The entry of an agent in the answer to `agents`."""

    agent: str
    name: Name
    state: str
    parent: Name
    spent: SpentAmounts
    last_activity: str


class AgentTree(TypedDict):
    """The answer to `agents`: agents below an agent, and how many more there are."""

    result: list[AgentOfTree]
    more: NotRequired[Annotated[int, "How many more there are."]]


class ShownCall(TypedDict):
    """A tool call of a reply, in the answer to `history`."""

    id: str
    tool: str
    arguments: Annotated[str, "As JSON."]


class ShownMessage(TypedDict):
    """A message of a history, in the answer to `history` and `diff`."""

    position: int
    kind: str
    text: str
    calls: NotRequired[list[ShownCall]]
    id: NotRequired[Annotated[str, "Of a result: the call that it answers."]]
    tool: NotRequired[str]
    is_error: NotRequired[bool]
    cut: NotRequired[bool]


class TailPart(TypedDict):
    """The messages that one of two compared agents has and the other does not."""

    agent: str
    name: NotRequired[Name]
    messages: list[ShownMessage]


class HistoryDifference(TypedDict):
    """The answer to `diff`: the position up to which two histories are equal, and the messages after it."""

    common: int
    a: TailPart
    b: TailPart


class AskingCalls(TypedDict):
    """The calls of one agent that wait for a decision, in the answer to `approvals`."""

    agent: str
    asks: list[AskingCall]


@act("agents", "List agents", verb="agents", gives=AgentTree, hints=ONLY_READS)
def agents(reach: Access, under: str | None = None, dead: bool = False) -> AgentTree:
    """List the agents as a tree: each after the one that supervises it.

    Args:
        under: Only this one and those below it.
        dead: Whether the dead are listed, too.
    """
    shown, more = reach.below(under, MOST_AGENTS, dead)
    times = last_activity(reach.system, shown)
    rows: list[AgentOfTree] = [
        {
            "agent": record.uuid,
            "name": record.name,
            "state": str(reach.system.state_of(record)),
            "parent": record.supervisor_uuid if record.uuid != reach.top else None,
            "spent": spent_by(record),
            "last_activity": iso_time(times[record.uuid]),
        }
        for record in shown
    ]
    return {"result": rows, "more": more}


@act("history", "Show a history", verb="history", gives=list[ShownMessage], hints=ONLY_READS)
def history(
    reach: Access,
    agent: NamedAgent,
    before: Annotated[int, Field(ge=1, le=MOST_POSITION)] | None = None,
    last: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 20,
) -> list[ShownMessage]:
    """Show the latest messages of an agent's history, with calls and their results, each text cut at 4,000 characters.

    Args:
        before: Only messages before this position.
        last: How many messages. Default: 20.
    """
    scrollback = scrollback_of(reach.client, reach.find(agent).uuid)
    return [
        _message(message)
        for message in (scrollback.latest(last) if before is None else scrollback.before(before, last))
    ]


@act("diff", "Compare two histories", verb="diff", gives=HistoryDifference, hints=ONLY_READS)
def diff(reach: Access, a: NamedAgent, b: NamedAgent) -> HistoryDifference:
    """Show up to which position two agents have the same history, and what each has said since."""
    diff = reach.ref(a).diff(reach.ref(b))
    return {"common": diff.common, "a": _part(diff.a), "b": _part(diff.b)}


@act("approvals", "List calls that ask", verb="approvals", gives=list[AskingCalls], hints=ONLY_READS)
def approvals(reach: Access) -> list[AskingCalls]:
    """List the calls of tools that wait for a decision, by agent."""
    calls: dict[str, list[AskingCall]] = {}
    for call in reach.system.approvals.pending():
        calls.setdefault(call.agent, []).append(call_that_asks(call))
    return [{"agent": uuid, "asks": calls} for uuid, calls in calls.items() if reach.reaches(uuid)]


def _message(message: Message) -> ShownMessage:
    """Return a message as it is shown: with the calls of a reply, or with the call that a result answers."""
    made = calls_in(message) if message.kind == Kind.ASSISTANT else ()
    calls = [(call, json.dumps(dict(call.input), ensure_ascii=False)) for call in made]
    cut = any(len(text) > SHOWN_LENGTH for text in (message.content, *(arguments for _, arguments in calls)))
    shown: ShownMessage = {"position": message.id, "kind": str(message.kind), "text": message.content[:SHOWN_LENGTH]}
    if calls:
        shown["calls"] = [
            {"id": call.id, "tool": call.name, "arguments": arguments[:SHOWN_LENGTH]} for call, arguments in calls
        ]
    if message.kind == Kind.TOOL_RESULT:
        shown["id"], shown["tool"] = str(message.data.get("tool_use_id")), str(message.data.get("name"))
        if message.data.get("is_error"):
            shown["is_error"] = True
    if cut:
        shown["cut"] = True
    return shown


def _part(tail: Tail) -> TailPart:
    """Return the latest messages that one of two compared agents has and the other does not."""
    return {
        "agent": tail.agent,
        "name": tail.name,
        "messages": [_message(message) for message in tail.messages[-MOST_SHOWN:]],
    }
