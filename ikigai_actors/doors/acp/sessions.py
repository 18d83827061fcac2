"""The requests of a client about sessions. Each session is an agent of the tree."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from acp.schema import (
    CloseSessionRequest,
    CloseSessionResponse,
    DeleteSessionRequest,
    DeleteSessionResponse,
    ForkSessionRequest,
    ForkSessionResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    NewSessionRequest,
    NewSessionResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfo,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
)
from pydantic import BaseModel

from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.doors.acp.view import ClientView
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.listing import cursor_after, place_after
from ikigai_actors.reach.views import last_activity
from ikigai_actors.text import iso_time
from ikigai_actors.verbs.acts.changes import kill
from ikigai_actors.verbs.acts.settings import configure, read_settings
from ikigai_actors.verbs.acts.turns import asked_fork, born

BIRTH = 20.0
"""Seconds within which a host has made the agent of a new session."""

_PAGE = 100
"""The number of sessions in one answer to ``session/list``."""

_FIRST = "-1 0 -"
"""The cursor with which the first page of ``session/list`` is read."""

DEFAULT, ADAPTIVE = "default", "adaptive"

OptionCategory = Literal["model", "thought_level"]
ConfigOptions = list[SessionConfigOptionSelect | SessionConfigOptionBoolean]


class Sessions:
    """The sessions of one client. The methods wait for the database, so do not call them on an event loop."""

    def __init__(self, access: Access, workspace: str | None, view: ClientView) -> None:
        """Make the sessions of a client. ``workspace`` is the directory of the agents' tools; None if unknown."""
        self._access, self._workspace, self._view = access, workspace, view

    def new(self, asked: NewSessionRequest) -> NewSessionResponse:
        """Fork the topmost agent; the child is the new session."""
        self._check_place(asked)
        uuid = self._opened(self._forked(self._access.find(None).uuid, None))
        return NewSessionResponse(session_id=uuid, config_options=self._options(uuid))

    def fork(self, asked: ForkSessionRequest) -> ForkSessionResponse:
        """Fork the agent of a session, at its head or at an earlier position; the child is a new session."""
        self._check_place(asked)
        ours = (asked.field_meta or {}).get("ikigai") or {}
        uuid = self._opened(self._forked(self._access.find(asked.session_id).uuid, ours.get("at")))
        return ForkSessionResponse(session_id=uuid, config_options=self._options(uuid))

    def load(self, asked: LoadSessionRequest) -> LoadSessionResponse:
        """Open the session of an existing agent, and show its history."""
        self._check_place(asked)
        uuid = self._access.find(asked.session_id).uuid
        self._view.open_with_history(uuid)
        return LoadSessionResponse(config_options=self._options(uuid))

    def resume(self, asked: ResumeSessionRequest) -> ResumeSessionResponse:
        """Open the session of an existing agent, without its history."""
        self._check_place(asked)
        uuid = self._opened(self._access.find(asked.session_id).uuid)
        return ResumeSessionResponse(config_options=self._options(uuid))

    def list(self, asked: ListSessionsRequest) -> ListSessionsResponse:
        """Return a page of the living agents, the oldest first, as sessions."""
        access = self._access
        records = access.living(place_after(asked.cursor or _FIRST), _PAGE + 1)
        page = records[:_PAGE]
        times = last_activity(access.system, page)
        sessions = [
            SessionInfo(
                session_id=record.uuid,
                cwd=self._workspace or asked.cwd or str(Path.cwd()),
                title=record.short,
                updated_at=iso_time(times[record.uuid]),
                field_meta={"ikigai": {"parent": record.supervisor_uuid}},
            )
            for record in page
        ]
        more = cursor_after(page[-1]) if len(records) > _PAGE else None
        return ListSessionsResponse(sessions=sessions, next_cursor=more)

    def close(self, asked: CloseSessionRequest) -> CloseSessionResponse:
        """Stop showing a session.

        The agent of the session lives on; the turn in progress was interrupted before, as by a cancel.
        """
        self._view.close(asked.session_id)
        return CloseSessionResponse()

    def delete(self, asked: DeleteSessionRequest) -> DeleteSessionResponse:
        """End the agent of a session."""
        kill.call(self._access, {"agent": self._access.find(asked.session_id).uuid})
        return DeleteSessionResponse()

    def set_option(self, asked: SetSessionConfigOptionSelectRequest) -> SetSessionConfigOptionResponse:
        """Change a setting of the agent of a session."""
        uuid, name, value = self._access.find(asked.session_id).uuid, asked.config_id, asked.value
        if name == "model":
            settings: dict[str, Any] = {"model": None if value == DEFAULT else value}
        elif name == "thinking" and value in (DEFAULT, ADAPTIVE):
            settings = {"thinking": None if value == DEFAULT else {"type": ADAPTIVE}}
        else:
            raise BadInput("Expected model with a name as provider:model, or thinking with default or adaptive.")
        change = {"agent": uuid, "settings": settings}
        if not configure.call(self._waiting(), change)["done"]:
            raise TimedOut("The agent is busy, and has the setting after its turn.")
        return SetSessionConfigOptionResponse(config_options=self._options(uuid))

    def _waiting(self) -> Access:
        """Return the access for commands that wait for a host."""
        return self._access.patient(BIRTH)

    def _check_place(
        self, asked: NewSessionRequest | ForkSessionRequest | LoadSessionRequest | ResumeSessionRequest
    ) -> None:
        """Refuse a directory that the agents' tools do not have, and servers that would run elsewhere."""
        if asked.mcp_servers:
            raise BadInput(
                "The agents have the tools of their host: give servers to it, with ikigai --mcp COMMAND, and none here."
            )
        cwd, ours = asked.cwd, self._workspace
        if not Path(cwd).is_absolute():
            raise BadInput("Expected cwd to be an absolute path.")
        if ours is not None and Path(cwd).resolve() != Path(ours).resolve():
            raise BadInput(f"The agents' workspace is {ours}, not {cwd}. Open that one, or start ikigai for this one.")

    def _opened(self, uuid: str) -> str:
        self._view.open(uuid)
        return uuid

    def _options(self, uuid: str) -> ConfigOptions:
        """Return the settings of an agent that a client may change, as options of its session."""
        settings = read_settings.call(self._access, {"agent": uuid})["settings"]
        model = str(settings.get("model") or DEFAULT)
        thinks = ADAPTIVE if settings.get("thinking") else DEFAULT
        return [
            _option("model", "Model", "model", model, dict.fromkeys((model, DEFAULT))),
            _option("thinking", "Thinking", "thought_level", thinks, (DEFAULT, ADAPTIVE)),
        ]

    def _forked(self, parent: str, at: object) -> str:
        """Fork an agent at a position or its head, and return the uuid of the child."""
        place = at if at is None or isinstance(at, int) else -1
        return born(self._access, asked_fork(self._access, parent, at=place, on_orphan="reparent"), BIRTH)


def _option(
    name: str, title: str, category: OptionCategory, value: str, values: Iterable[str]
) -> SessionConfigOptionSelect:
    options = [SessionConfigSelectOption(value=value, name=value) for value in values]
    return SessionConfigOptionSelect(
        id=name, name=title, category=category, type="select", current_value=value, options=options
    )


METHODS: Mapping[str, tuple[type[BaseModel], Callable[[Sessions, Any], BaseModel]]] = {
    "session/new": (NewSessionRequest, Sessions.new),
    "session/fork": (ForkSessionRequest, Sessions.fork),
    "session/load": (LoadSessionRequest, Sessions.load),
    "session/resume": (ResumeSessionRequest, Sessions.resume),
    "session/list": (ListSessionsRequest, Sessions.list),
    "session/close": (CloseSessionRequest, Sessions.close),
    "session/delete": (DeleteSessionRequest, Sessions.delete),
    "session/set_config_option": (SetSessionConfigOptionSelectRequest, Sessions.set_option),
}
"""The methods of the protocol: the model of their parameters, and their work with sessions."""
