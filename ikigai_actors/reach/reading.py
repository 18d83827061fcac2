"""The answers to the observer page's read requests, as JSON data.

Each function reads one moment, and only the data that the page shows.

Every function takes the system and the query of the request. Every function raises `BadInput` for a query that cannot
be answered, and the errors of the handles.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.rows import state_at
from ikigai_actors.reach.shown_questions import QuestionSeen, ShownQuestion
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.agents import registry
from ikigai_actors.records.budgets.status import budgets_that_limit
from ikigai_actors.records.log import moments
from ikigai_actors.records.log.diff import read_diff
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.store.base import Transaction

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef, System

PageQuery = Mapping[str, str]

_MOST_MESSAGES = 400
"""The most messages of one answer."""

_MOST_LANES = 200
"""The most lanes of one answer; a screen shows 60."""

_MOST_PLACES = 2_000
"""The most agents in one request for positions."""

_DENSE = 1_500
"""The number of messages above which a lane is returned as counts: no screen has as many pixels."""

_EDGES = 120
"""The number of intervals for which a dense lane has counts."""

_BACK = 50
"""The number of messages that are read at once while searching back for one that shows the agent's state."""

_MOST_BUDGETS = 100

_KEPT = (
    "child", "parent", "name", "tool_use_id", "is_error", "usage", "model", "from", "head", "how", "label",
    "stop_reason", "keep_from", "sender", "mark", "before", "output", "attached", "approved", "by",
)  # fmt: skip
"""The fields of a message's data that the page shows; provider blocks and settings are not sent."""


def message_as_json(message: Message) -> dict[str, Any]:
    """Return a message as JSON data for the observer page."""
    data = {name: message.data[name] for name in _KEPT if name in message.data}
    if message.kind == Kind.ASSISTANT and (calls := calls_in(message)):
        data["calls"] = [{"id": call.id, "name": call.name, "input": dict(call.input)} for call in calls]
    return {
        "agent": message.agent_uuid,
        "id": message.id,
        "kind": str(message.kind),
        "content": message.content,
        "data": json.loads(json.dumps(data, default=str)),
        "at": message.created_at,
    }


def _log(system: "System", query: PageQuery) -> list[dict[str, Any]]:
    """Return the messages of a history up to ``until``, including inherited ones, oldest first."""
    scrollback = scrollback_of(system, named_agent(system, query).uuid)
    count = _number(query, "count", 80)
    if not 1 <= count <= _MOST_MESSAGES:
        raise BadInput(f"Expected count to be 1 to {_MOST_MESSAGES}, got {count}.")
    if "until" in query:
        return [message_as_json(message) for message in scrollback.before(_number(query, "until") + 1, count)]
    return [message_as_json(message) for message in scrollback.latest(count)]


def messages_after(system: "System", places: Mapping[str, int]) -> dict[str, list[Message]]:
    """Return the messages that each of these agents wrote after a position, by uuid."""

    def read(tx: Transaction) -> dict[str, list[Message]]:
        return {uuid: section(tx, uuid, place) for uuid, place in places.items()}

    return system._store.read(read)


def _at(system: "System", query: PageQuery) -> dict[str, dict[str, Any]]:
    """Return the position and the state, at a time, of each agent in the query, by uuid."""
    uuids, time = _agents(query, _MOST_PLACES), _number(query, "time")

    def read(tx: Transaction) -> dict[str, dict[str, Any]]:
        ended = {record.uuid: record.ended_at for record in registry.some(tx, uuids)}
        places = moments.positions_at(tx, uuids, time)
        return {
            uuid: {"position": place, "state": _state_at(tx, uuid, place, time, ended.get(uuid))}
            for uuid, place in places.items()
        }

    return system._store.read(read)


def _state_at(tx: Transaction, uuid: str, place: int, time: int, ended: int | None) -> str:
    if ended is not None and ended <= time:
        return "dead"
    parts = (moments.marks(tx, uuid, max(0, end - _BACK), end) for end in range(place, 0, -_BACK))
    return state_at(mark for part in parts for mark in reversed(part))


def _lanes(system: "System", query: PageQuery) -> dict[str, Any]:
    """Return the messages of the agents in the query between two times, for the timeline, with their mails."""
    uuids = _agents(query, _MOST_LANES)
    since, until = _number(query, "from"), _number(query, "to")
    if since > until:
        raise BadInput("Expected from to come before to.")

    def read(tx: Transaction) -> dict[str, Any]:
        first, last = moments.positions_at(tx, uuids, since), moments.positions_at(tx, uuids, until)
        lanes = [_lane(tx, uuid, first[uuid], last[uuid], since, until) for uuid in uuids if uuid in last]
        return {"lanes": lanes, "mail": moments.mails_between(tx, uuids, since, until)}

    return system._store.read(read)


def _lane(tx: Transaction, uuid: str, first: int, last: int, since: int, until: int) -> dict[str, Any]:
    if last - first <= _DENSE:  # with the message before, whose bar reaches into the window
        return {"agent": uuid, "marks": moments.marks(tx, uuid, first - 1, last), "dense": None}
    places = moments.positions_between(tx, uuid, since, until, _EDGES)
    return {"agent": uuid, "marks": [], "dense": [later - place for place, later in pairwise(places)]}


def _activity(system: "System", query: PageQuery) -> list[tuple[int, int]]:
    """Return the amount of writing in each interval of ``step`` milliseconds. Reads every message."""
    step = _number(query, "step")
    if step < 1:
        raise BadInput("Expected step to be 1 or more.")
    return system._store.read(lambda tx: moments.log_activity(tx, step))


def _diff(system: "System", query: PageQuery) -> dict[str, Any]:
    """Return the position where two histories part, and the later messages of each."""
    a, b = (named_agent(system, query, name).uuid for name in ("a", "b"))
    diff = system._store.read(lambda tx: read_diff(tx, a, b))
    tails = {"a": diff.a.messages, "b": diff.b.messages}
    return {
        "common": diff.common,
        **{name: [message_as_json(message) for message in tail] for name, tail in tails.items()},
    }


def _documents(system: "System", query: PageQuery) -> list[dict[str, Any]]:
    """Return the documents; for a ``path``, the versions of that document."""
    rows = system.documents.log(query["path"]) if "path" in query else system.documents.list()
    return [asdict(row) for row in rows]


def _document(system: "System", query: PageQuery) -> dict[str, Any]:
    """Return a version of a document, the latest by default."""
    version = _number(query, "version") if "version" in query else None
    return asdict(system.documents.read(_text(query, "path"), version))


def _budgets(system: "System", query: PageQuery) -> list[dict[str, Any]]:
    """Return the budgets that have limits."""
    return [asdict(budget) for budget in system._store.read(lambda tx: budgets_that_limit(tx, _MOST_BUDGETS))]


def _questions(system: "System", query: PageQuery) -> list[QuestionSeen]:
    waiting = system.questions.pending()
    return [ShownQuestion(question, system.handle(question.agent).record.short).seen() for question in waiting]


def named_agent(system: "System", query: PageQuery, name: str = "agent") -> "AgentRef":
    """Return the agent that a request names. Raises `BadInput` without a name, and what `System.agent` raises."""
    return system.agent(_text(query, name))


def _text(query: PageQuery, name: str) -> str:
    if not query.get(name):
        raise BadInput(f"Expected {name}.")
    return query[name]


def _number(query: PageQuery, name: str, default: int | None = None) -> int:
    text = query.get(name)
    return default if text is None and default is not None else whole_number(name, text or "")


def whole_number(name: str, text: str) -> int:
    """Parse a whole number from a request; ``name`` is for the error. Raises `BadInput`."""
    try:
        value = int(text)
    except ValueError as error:
        raise BadInput(f"Expected {name} to be a whole number, got {shown(text)}.") from error
    if abs(value) >= 2**62:
        raise BadInput(f"Expected {name} to be a number that a database holds.")
    return value


def _agents(query: PageQuery, most: int) -> list[str]:
    uuids = list(dict.fromkeys(part for part in query.get("agents", "").split(",") if part))
    if not 1 <= len(uuids) <= most:
        raise BadInput(f"Expected 1 to {most} agents, by uuid and separated by commas; got {len(uuids)}.")
    return uuids


READINGS: Mapping[str, Callable[["System", PageQuery], object]] = {
    "log": _log,
    "at": _at,
    "lanes": _lanes,
    "activity": _activity,
    "diff": _diff,
    "documents": _documents,
    "document": _document,
    "budgets": _budgets,
    "questions": _questions,
}
"""The functions that answer read requests, by the last part of the request's path."""
