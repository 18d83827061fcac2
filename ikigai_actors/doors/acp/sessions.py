"""The methods of a client for sessions, each of which is an agent of the tree."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.doors.acp.view import ClientView
from ikigai_actors.doors.json_rpc import Params
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.views import last_activity
from ikigai_actors.records.agents.lists import Age, age_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.text import iso_time, storable
from ikigai_actors.verbs.acts.changes import kill
from ikigai_actors.verbs.acts.settings import configure, read_settings
from ikigai_actors.verbs.acts.turns import asked_fork, born

BIRTH = 20.0
"""Seconds within which a host has made the agent of a new session."""

_PAGE = 100
"""Sessions of one answer of ``session/list``."""

_FIRST = "-1 0 -"
"""The cursor of the first answer."""

DEFAULT, ADAPTIVE = "default", "adaptive"


class Sessions:
    """The sessions of one client. Its methods wait for the database, so no event loop calls them."""

    def __init__(self, access: Access, workspace: str | None, view: ClientView) -> None:
        """Make the sessions of a client. The tools of agents work in this directory; None if it is not known."""
        self._access, self._workspace, self._view = access, workspace, view

    def new(self, params: Params) -> dict[str, Any]:
        """Fork the topmost agent: the child is the session."""
        self._check_place(params)
        return self._opened(self._forked(self._access.find(None).uuid, None))

    def fork(self, params: Params) -> dict[str, Any]:
        """Fork the agent of a session, at its end or at an earlier position."""
        self._check_place(params)
        ours = (params.get("_meta") or {}).get("ikigai") or {}
        return self._opened(self._forked(session_of(self._access, params).uuid, ours.get("at")))

    def load(self, params: Params) -> dict[str, Any]:
        """Open a session, and show its history."""
        self._check_place(params)
        uuid = session_of(self._access, params).uuid
        self._view.open_with_history(uuid)
        return {"configOptions": self._options(uuid)}

    def resume(self, params: Params) -> dict[str, Any]:
        """Open a session without its history."""
        self._check_place(params)
        opened = self._opened(session_of(self._access, params).uuid)
        return {"configOptions": opened["configOptions"]}

    def list(self, params: Params) -> dict[str, Any]:
        """The living agents, oldest first, a page at a time."""
        access = self._access
        found = access.living(_place_in(str(params.get("cursor") or _FIRST)), _PAGE + 1)
        page = found[:_PAGE]
        times = last_activity(access.system, page)
        sessions = [
            {
                "sessionId": one.uuid,
                "cwd": self._workspace or params.get("cwd") or str(Path.cwd()),
                "title": one.short,
                "updatedAt": iso_time(times[one.uuid]),
                "_meta": {"ikigai": {"parent": one.supervisor_uuid}},
            }
            for one in page
        ]
        more = {"nextCursor": " ".join(map(str, age_of(page[-1])))} if len(found) > _PAGE else {}
        return {"sessions": sessions, **more}

    def close(self, params: Params) -> dict[str, Any]:
        """Show a session no more; its agent lives on, and its turn was ended as by a cancel."""
        self._view.close(_session_id(params))
        return {}

    def delete(self, params: Params) -> dict[str, Any]:
        """End the agent of a session."""
        kill.call(self._access, {"agent": session_of(self._access, params).uuid})
        return {}

    def set_option(self, params: Params) -> dict[str, Any]:
        """Change a setting of the agent of a session."""
        uuid, name, value = session_of(self._access, params).uuid, params.get("configId"), params.get("value")
        if name == "model" and isinstance(value, str):
            settings: dict[str, Any] = {"model": None if value == DEFAULT else value}
        elif name == "thinking" and value in (DEFAULT, ADAPTIVE):
            settings = {"thinking": None if value == DEFAULT else {"type": ADAPTIVE}}
        else:
            raise BadInput("Expected model with a name as provider:model, or thinking with default or adaptive.")
        change = {"agent": uuid, "settings": settings}
        if not configure.call(self._waiting(), change)["done"]:
            raise TimedOut("The agent is busy, and has the setting after its turn.")
        return {"configOptions": self._options(uuid)}

    def _waiting(self) -> Access:
        """The reach for calls that wait for a host."""
        return self._access.patient(BIRTH)

    def _check_place(self, params: Params) -> None:
        """Refuse a directory that the agents' tools do not have, and servers that would run elsewhere."""
        if params.get("mcpServers"):
            raise BadInput(
                "The agents have the tools of their host: give servers to it, with ikigai --mcp COMMAND, and none here."
            )
        cwd, ours = params.get("cwd"), self._workspace
        if not isinstance(cwd, str) or not Path(cwd).is_absolute():
            raise BadInput("Expected cwd to be an absolute path.")
        if ours is not None and Path(cwd).resolve() != Path(ours).resolve():
            raise BadInput(f"The agents' workspace is {ours}, not {cwd}. Open that one, or start ikigai for this one.")

    def _opened(self, uuid: str) -> dict[str, Any]:
        self._view.open(uuid)
        return {"sessionId": uuid, "configOptions": self._options(uuid)}

    def _options(self, uuid: str) -> Sequence[Mapping[str, Any]]:
        """The settings that a client may change."""
        settings = read_settings.call(self._access, {"agent": uuid})["settings"]
        model = str(settings.get("model") or DEFAULT)
        thinks = ADAPTIVE if settings.get("thinking") else DEFAULT
        return [
            _option("model", "Model", "model", model, dict.fromkeys((model, DEFAULT))),
            _option("thinking", "Thinking", "thought_level", thinks, (DEFAULT, ADAPTIVE)),
        ]

    def _forked(self, parent: str, at: object) -> str:
        """The uuid of a new child."""
        place = at if at is None or isinstance(at, int) else -1
        return born(self._access, asked_fork(self._access, parent, at=place, on_orphan="reparent"), BIRTH)


def session_of(access: Access, params: Params) -> AgentRecord:
    """The agent of the session that a request names. Raises `BadInput` without one, and what `Access.find` does."""
    return access.find(_session_id(params))


def _session_id(params: Params) -> str:
    found = params.get("sessionId")
    if not isinstance(found, str):
        raise BadInput("Expected a sessionId.")
    return found


def _option(name: str, title: str, category: str, value: str, values: Any) -> dict[str, Any]:
    options = [{"value": one, "name": one} for one in values]
    return {
        "id": name, "name": title, "category": category, "type": "select", "currentValue": value, "options": options
    }  # fmt: skip


METHODS: Mapping[str, Callable[[Sessions, Params], Any]] = {
    "session/new": Sessions.new,
    "session/fork": Sessions.fork,
    "session/load": Sessions.load,
    "session/resume": Sessions.resume,
    "session/list": Sessions.list,
    "session/close": Sessions.close,
    "session/delete": Sessions.delete,
    "session/set_config_option": Sessions.set_option,
}
"""The methods of the protocol, and their work with sessions."""


def _place_in(cursor: str) -> Age:
    """The place after which the next sessions come. Raises `BadInput` for a cursor that was not given."""
    match cursor.split(" "):
        case [at, born, uuid] if at.lstrip("-").isdecimal() and born.isdecimal() and max(len(at), len(born)) < 18:
            return int(at), int(born), storable(uuid)
    raise BadInput(f"Expected a cursor that session/list gave; got {cursor[:40]!r}.")
