"""Records as JSON objects: their fields by name, times in ISO 8601."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ikigai_actors.frozen import as_dict
from ikigai_actors.text import iso_time

if TYPE_CHECKING:
    from ikigai_actors.records.mail.timers import Timer
    from ikigai_actors.store.hosts.rows import HostRecord
    from ikigai_actors.system.handles.ref import AgentRef


def as_row(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name, with times in ISO 8601. Texts of models and people are not escaped."""
    return {name: _shown(name, value) for name, value in as_dict(record).items()}


def _shown(name: str, value: Any) -> Any:
    if name.endswith("_at") or name == "deadline":
        return iso_time(value) if value else None  # 0 of `active_at`: never
    return value


def as_value(value: object) -> object:
    """Return a value as JSON data: records by their fields, times in ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: as_value(field) for name, field in as_row(value).items()}
    if isinstance(value, Mapping):
        return {str(name): as_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_value(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def agent_row(agent: "AgentRef") -> dict[str, Any]:
    """Return the uuid and the name of an agent as JSON data."""
    from ikigai_actors.verbs.text.naming import named

    return {"agent_uuid": agent.uuid, "name": agent.name, "label": named(agent)}


def timer_row(timer: "Timer", label: str) -> dict[str, Any]:
    """Return a timer as JSON data; ``label`` is the label of its agent."""
    return {
        "agent_uuid": timer.agent_uuid,
        "label": label,
        "id": timer.id,
        "due_at": iso_time(timer.due_at),
        "every": timer.schedule,
        "zone": timer.zone,
        "as": timer.fires_as,
        "sender": timer.sender,
        "text": timer.body,
    }


_INNER = {"lease_until", "now", "waits"}
"""The columns of a host's row that only other hosts need."""


def host_row(host: "HostRecord") -> dict[str, Any]:
    """Return a host as JSON data."""
    return {name: value for name, value in as_row(host).items() if name not in _INNER} | {"state": host.state}
