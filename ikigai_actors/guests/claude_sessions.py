"""Sessions of the Claude Agent SDK in this database: a session store of that library.

    store = IkigaiSessionStore(ActorSystem.attach(database))
    options = ClaudeAgentOptions(session_store=store, resume=session_id)

A transcript is a guest log (`ikigai_actors.records.guests`), and so is that of each subagent. An entry with a ``uuid``
is kept once, however often its batch comes. The summary is folded in the transaction that appends.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import BadInput
from ikigai_actors.guests.guest_database import GuestDatabase
from ikigai_actors.records import guests
from ikigai_actors.records.guests import GuestEntry, GuestLog, GuestPlace
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.aio import AsyncSystem
from ikigai_actors.system.handles.ref import System

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

    def __init__(self, system: System | AsyncSystem[System]) -> None:
        """Keep sessions beside the agents of an open system, which need not be used."""
        self._database = GuestDatabase(system)

    async def append(self, key: "SessionKey", entries: "list[SessionStoreEntry]") -> None:
        """Append entries, or none of them; those whose ``uuid`` is there already are left out."""
        place = _place(key)
        rows = [GuestEntry(key=str(entry.get("uuid") or ""), data=_json(entry)) for entry in entries]
        if rows:
            await self._database.ask_in_order(lambda: self._database.write(lambda tx: _append(tx, key, place, rows)))

    async def load(self, key: "SessionKey") -> "list[SessionStoreEntry] | None":
        """All entries of a transcript, in their order; None for one that was never written."""
        place = _place(key)

        def read(tx: Transaction) -> "list[SessionStoreEntry] | None":
            log = guests.find_guest(tx, place)
            return None if log is None else [json.loads(entry.data or "") for entry in guests.latest_entries(tx, log)]

        return await self._database.ask(lambda: self._database.read(read))

    async def list_sessions(self, project_key: str) -> "list[SessionStoreListEntry]":
        """The sessions of a project, and when each was changed last, in milliseconds since 1970."""
        return [{"session_id": str(log.name), "mtime": log.changed_at} for log in await self._logs(project_key)]

    async def list_session_summaries(self, project_key: str) -> "list[SessionSummaryEntry]":
        """The summaries of a project's sessions, as the SDK has made them."""
        logs = await self._logs(project_key)
        return [_summary(log) for log in logs if log.data]

    async def delete(self, key: "SessionKey") -> None:
        """Delete a transcript; that of a session with those of its subagents."""
        place = _place(key)

        def work(tx: Transaction) -> None:
            below = guests.guests_within(tx, _SUBAGENT, _scope(key)) if place.guest == _SESSION else []
            for each in (place, *(GuestPlace(log.guest, log.scope, str(log.name)) for log in below)):
                if (log := guests.lock_guest(tx, each)) is not None:
                    guests.drop_guest(tx, log)

        await self._database.ask_in_order(lambda: self._database.write(work))

    async def list_subkeys(self, key: "SessionListSubkeysKey") -> list[str]:
        """The transcripts of a session's subagents, by their subpaths."""
        return [str(log.name) for log in await self._logs(_scope(key), _SUBAGENT)]

    async def _logs(self, scope: str, guest: str = _SESSION) -> list[GuestLog]:
        return await self._database.ask(lambda: self._database.read(lambda tx: guests.guests_within(tx, guest, scope)))


def _append(tx: Transaction, key: "SessionKey", place: GuestPlace, rows: Sequence[GuestEntry]) -> None:
    log = guests.make_guest(tx, place)
    there = guests.keys_among(tx, log, [row.key for row in rows if row.key])
    new = []
    for row in rows:
        if row.key not in there:
            new.append(row)
            there |= {row.key} - {""}
    data = None
    if new and place.guest == _SESSION:
        from claude_agent_sdk import fold_session_summary  # slow to import, and the caller has it

        said = [json.loads(row.data or "") for row in new]
        data = _json(fold_session_summary(_summary(log) if log.data else None, key, said))
    guests.append_entries(tx, log, new, data)


def _summary(log: GuestLog) -> "SessionSummaryEntry":
    return {"session_id": str(log.name), "mtime": log.changed_at, "data": json.loads(log.data)["data"]}


def _place(key: "SessionKey") -> GuestPlace:
    project = guests.check_guest_name(key.get("project_key"), "project_key")
    session = guests.check_guest_name(key.get("session_id"), "session_id")
    if not (subpath := key.get("subpath")):
        return GuestPlace(_SESSION, project, session)
    return GuestPlace(_SUBAGENT, _scope(key), guests.check_guest_name(subpath, "subpath"))


def _scope(key: Mapping[str, Any]) -> str:
    """What groups the subagents of a session."""
    return json.dumps([key["project_key"], key["session_id"]])


def _json(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"An entry of a session must be JSON: {error}. Nothing was appended.") from error
