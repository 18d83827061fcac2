"""Sessions of the OpenAI Agents SDK in this database: a session of that library, which branches.

    session = IkigaiSession("mast", ActorSystem.attach(database))
    await Runner.run(agent, "Plan the mast.", session=session)
    taller = await session.branch("mast, but taller")       # one row, whatever the length of the session

A session is a guest log (`ikigai_actors.records.guests`), and each of its items an entry.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ikigai_actors.arguments import check_count
from ikigai_actors.errors import BadInput
from ikigai_actors.guests.guest_database import GuestDatabase
from ikigai_actors.records import guests
from ikigai_actors.records.guests import GuestEntry, GuestPlace
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.aio import AsyncSystem
from ikigai_actors.system.handles.ref import System

if TYPE_CHECKING:
    from agents import SessionSettings, TResponseInputItem

T = TypeVar("T")

_SESSION = "openai-session"


class IkigaiSession:
    """A session in the database of a system. Several processes may use one session at once: no item is lost."""

    def __init__(
        self,
        session_id: str,
        system: System | AsyncSystem[System],
        *,
        session_settings: "SessionSettings | None" = None,
    ) -> None:
        """Use the session of this name; its first item makes it.

        Args:
            session_id: its name.
            system: an open system, whose agents need not be used.
            session_settings: of them the ``limit`` counts, where `get_items` is asked for no other one.
        """
        self._place = GuestPlace(_SESSION, "", guests.check_guest_name(session_id, "session_id"))
        self._system, self._database = system, GuestDatabase(system)
        self.session_id = session_id
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> "list[TResponseInputItem]":
        """The latest items, the oldest of them first; all without a limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        most = None if limit is None else check_count(limit, "limit")

        def read(tx: Transaction) -> "list[TResponseInputItem]":
            log = guests.find_guest(tx, self._place)
            return [] if log is None else [_item(entry) for entry in guests.latest_entries(tx, log, most)]

        return await self._database.ask(lambda: self._database.read(read))

    async def add_items(self, items: "list[TResponseInputItem]") -> None:
        """Append items, all or none of them."""
        entries = [GuestEntry(data=_json(item)) for item in items]
        if entries:
            await self._write(lambda tx: guests.append_entries(tx, guests.make_guest(tx, self._place), entries))

    async def pop_item(self) -> "TResponseInputItem | None":
        """Take the latest item off; None when there is none. Branches keep it."""

        def work(tx: Transaction) -> "TResponseInputItem | None":
            log = guests.lock_guest(tx, self._place)
            latest = [] if log is None else guests.latest_entries(tx, log, 1)
            if log is None or not latest:
                return None
            guests.cut_guest(tx, log, latest[0].id - 1)
            return _item(latest[0])

        return await self._write(work)

    async def clear_session(self) -> None:
        """Take all items off. Branches keep them."""

        def work(tx: Transaction) -> None:
            if (log := guests.lock_guest(tx, self._place)) is not None:
                guests.drop_guest(tx, log)

        await self._write(work)

    async def branch(self, session_id: str, at: int | None = None) -> Self:
        """A new session that begins with the first ``at`` items of this one, or with all: one row.

        Raises `BadInput` when this session has no items or fewer than that, or the other one has some.
        """
        other = type(self)(session_id, self._system, session_settings=self.session_settings)
        await self._write(lambda tx: guests.fork_guest(tx, self._place, other._place, at))
        return other

    async def _write(self, work: Callable[[Transaction], T]) -> T:
        return await self._database.ask_in_order(lambda: self._database.write(work))


def _item(entry: GuestEntry) -> Any:
    return json.loads(entry.data or "")


def _json(item: object) -> str:
    try:
        return json.dumps(item)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"An item of a session must be JSON: {error}. Nothing was added.") from error
