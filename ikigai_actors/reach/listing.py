"""Agents and messages, in pages.

{"items": [...], "next": "WzE3…"}       # ``next`` is the cursor of the next page; null after the last one
"""

import base64
import json
from contextlib import suppress
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.reading import message_as_json
from ikigai_actors.reach.turns import spent_by
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.lists import Age, age_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.text import storable

MOST_IN_PAGE = 200
"""The most items of a page."""


def row_of_agent(access: Access, record: AgentRecord) -> dict[str, Any]:
    """Return an agent in the form for a client of the network API."""
    reaches = record.supervisor_uuid is not None and record.uuid != access.top
    return {
        "agent": record.uuid,
        "name": record.name,
        "state": str(access.system.state_of(record)),
        "supervisor": record.supervisor_uuid if reaches else None,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "unread": record.unread,
        "spent": spent_by(record),
    }


def agents_page(access: Access, cursor: str, limit: int) -> dict[str, Any]:
    """Return a page of the reachable living agents, the topmost first, then in order of birth."""
    after = _decoded(cursor) if cursor else None
    top = access.find(None)
    first = [top] if after is None else []
    rest = access.living(after or (0, 0, ""), limit + 1)
    records = [*first, *(record for record in rest if record.uuid != top.uuid)]
    page = records[:limit]
    more = len(records) > limit
    if not more:
        return {"items": [row_of_agent(access, record) for record in page], "next": None}
    last = page[-1]
    return {
        "items": [row_of_agent(access, record) for record in page],
        "next": _encoded((0, 0, "") if last.uuid == top.uuid else age_of(last)),
    }


def messages_page(access: Access, agent: str, after: int, limit: int) -> dict[str, Any]:
    """Return a page of the messages of an agent's history after a position, including inherited ones."""
    scrollback = scrollback_of(access.client, access.find(agent).uuid)
    messages = scrollback.between(after, after + limit)
    items = [message_as_json(message) for message in messages]
    return {"items": items, "next": str(messages[-1].id) if len(messages) == limit else None}


def _encoded(age: Age) -> str:
    return base64.urlsafe_b64encode(json.dumps(age).encode()).decode().rstrip("=")


def _decoded(cursor: str) -> Age:
    with suppress(ValueError, TypeError, RecursionError):
        at, born, uuid = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        numbers = type(at) is int and type(born) is int and 0 <= at < 2**63 and 0 <= born < 2**63
        if numbers and (uuid == "" or is_agent_uuid(uuid)):
            return (at, born, uuid)
    raise BadInput("Expected cursor to be the next of an earlier page.")


def cursor_after(record: AgentRecord) -> str:
    """Return the cursor for agents that were born after this one."""
    return " ".join(map(str, age_of(record)))


def place_after(cursor: str) -> Age:
    """Return the age from which the page of a cursor continues. Raises `BadInput` for an invalid cursor."""
    match cursor.split(" "):
        case [at, born, uuid] if at.lstrip("-").isdecimal() and born.isdecimal() and max(len(at), len(born)) < 18:
            return int(at), int(born), storable(uuid)
    raise BadInput(f"Expected a cursor that the list before gave; got {cursor[:40]!r}.")
