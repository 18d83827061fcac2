"""Sessions of the Claude Agent SDK in this database: a session store of that library.

    store = IkigaiSessionStore(ActorSystem.attach(database))
    options = ClaudeAgentOptions(session_store=store, resume=session_id)

A transcript is a guest log (`ikigai_actors.records.guests`), and so is that of each subagent. An entry with a ``uuid``
is kept once, however often its batch comes. The summary is folded in the transaction that appends.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.guest_logs import GuestLogs, GuestSystem, guest_place
from ikigai_actors.records.guests import GuestEntry, GuestLog, GuestPlace

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

_SESSION, _SUBAGENT = "claude-session", "claude-subagent"


class IkigaiSessionStore:
    """A session store in the database of a system. Several processes may use it at once, on one session too."""

    def __init__(self, system: GuestSystem) -> None:
        """Store sessions in the database of an open system; its agents need not be used."""
        self._logs = GuestLogs(system)

    async def append(self, key: "SessionKey", entries: "list[SessionStoreEntry]") -> None:
        """Append entries, all or none; entries whose ``uuid`` is stored already are left out."""
        place = _place(key)
        rows = [GuestEntry(key=str(entry.get("uuid") or ""), data=_json(entry)) for entry in entries]
        if rows:
            await self._logs.ask_in_order(lambda: self._logs.append_new(place, rows, partial(_summed, key, place)))

    async def load(self, key: "SessionKey") -> "list[SessionStoreEntry] | None":
        """Return all entries of a transcript, in order; None if it was never written."""
        place = _place(key)

        entries = await self._logs.ask(lambda: self._logs.entries(place))
        return None if entries is None else [json.loads(entry.data or "") for entry in entries]

    async def list_sessions(self, project_key: str) -> "list[SessionStoreListEntry]":
        """Return the sessions of a project, with the time of each one's last change in milliseconds since 1970."""
        return [{"session_id": str(log.name), "mtime": log.changed_at} for log in await self._within(project_key)]

    async def list_session_summaries(self, project_key: str) -> "list[SessionSummaryEntry]":
        """Return the summaries of a project's sessions, as the SDK has made them."""
        logs = await self._within(project_key)
        return [_summary(log) for log in logs if log.data]

    async def delete(self, key: "SessionKey") -> None:
        """Delete a transcript; the transcript of a session goes with the transcripts of its subagents."""
        place = _place(key)
        below = (_SUBAGENT, _scope(key)) if place.guest == _SESSION else None
        await self._logs.ask_in_order(lambda: self._logs.drop(place, below))

    async def list_subkeys(self, key: "SessionListSubkeysKey") -> list[str]:
        """Return the subpaths of the transcripts of all subagents of a session."""
        return [str(log.name) for log in await self._within(_scope(key), _SUBAGENT)]

    async def _within(self, scope: str, guest: str = _SESSION) -> list[GuestLog]:
        return await self._logs.ask(lambda: self._logs.within(guest, scope))


def _summed(key: "SessionKey", place: GuestPlace, log: GuestLog, new: Sequence[GuestEntry]) -> str | None:
    """Return the new summary of a session after new entries; None if it does not change, and for a subagent."""
    if not new or place.guest != _SESSION:
        return None
    from claude_agent_sdk import fold_session_summary  # slow to import, and the caller has it

    said = [json.loads(row.data or "") for row in new]
    return _json(fold_session_summary(_summary(log) if log.data else None, key, said))


def _summary(log: GuestLog) -> "SessionSummaryEntry":
    return {"session_id": str(log.name), "mtime": log.changed_at, "data": json.loads(log.data)["data"]}


def _place(key: "SessionKey") -> GuestPlace:
    session = guest_place(_SESSION, _project(key), key.get("session_id"), "session_id")
    if not (subpath := key.get("subpath")):
        return session
    return guest_place(_SUBAGENT, _scope(key), subpath, "subpath")


def _project(key: "SessionKey") -> str:
    return guest_place(_SESSION, "", key.get("project_key"), "project_key").name


def _scope(key: Mapping[str, Any]) -> str:
    """Return the name of the group that the transcripts of a session's subagents form."""
    return json.dumps([key["project_key"], key["session_id"]])


def _json(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"An entry of a session must be JSON: {error}. Nothing was appended.") from error
