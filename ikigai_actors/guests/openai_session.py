"""Sessions of the OpenAI Agents SDK in this database: a session of that library, which branches.

    session = IkigaiSession("mast", ActorSystem.attach(database))
    await Runner.run(agent, "Plan the mast.", session=session)
    taller = await session.branch("mast, but taller")       # one row, whatever the length of the session

A session is a guest log (`ikigai_actors.records.guests`), and each of its items an entry.
"""

import json
from typing import TYPE_CHECKING, Any, Self

from ikigai_actors.arguments import check_count
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.guest_logs import GuestLogs, GuestSystem, guest_place
from ikigai_actors.records.guests import GuestEntry, GuestPlace

if TYPE_CHECKING:
    from agents import SessionSettings, TResponseInputItem

_SESSION = "openai-session"


class IkigaiSession:
    """A session in the database of a system. Several processes may use one session at once: no item is lost."""

    def __init__(
        self,
        session_id: str,
        system: GuestSystem,
        *,
        session_settings: "SessionSettings | None" = None,
    ) -> None:
        """Use the session of this name; its first item creates it.

        Args:
            session_id: its name.
            system: an open system, whose agents need not be used.
            session_settings: only ``limit`` is used, as the default of `get_items`.
        """
        self._place = _place(session_id)
        self._system, self._logs = system, GuestLogs(system)
        self.session_id = session_id
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> "list[TResponseInputItem]":
        """Return the latest ``limit`` items, oldest first; None for all."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        most = None if limit is None else check_count(limit, "limit")

        entries = await self._logs.ask(lambda: self._logs.entries(self._place, most))
        return [_item(entry) for entry in entries or ()]

    async def add_items(self, items: "list[TResponseInputItem]") -> None:
        """Append items, all or none of them."""
        entries = [GuestEntry(data=_json(item)) for item in items]
        if entries:
            await self._logs.ask_in_order(lambda: self._logs.append(self._place, entries))

    async def pop_item(self) -> "TResponseInputItem | None":
        """Remove and return the latest item; None if there is none. Branches keep it."""
        latest = await self._logs.ask_in_order(lambda: self._logs.pop(self._place))
        return None if latest is None else _item(latest)

    async def clear_session(self) -> None:
        """Remove all items of the session. Branches keep their items."""
        await self._logs.ask_in_order(lambda: self._logs.drop(self._place))

    async def branch(self, session_id: str, at: int | None = None) -> Self:
        """Return a new session that begins with the first ``at`` items of this one, None for all.

        This stores one row only.

        Raises `BadInput` when this session has no items or fewer than ``at``, or the other session has items.
        """
        other = type(self)(session_id, self._system, session_settings=self.session_settings)
        target = _place(session_id)
        await self._logs.ask_in_order(lambda: self._logs.branch(self._place, target, at))
        return other


def _place(session_id: str) -> GuestPlace:
    return guest_place(_SESSION, "", session_id, "session_id")


def _item(entry: GuestEntry) -> Any:
    return json.loads(entry.data or "")


def _json(item: object) -> str:
    try:
        return json.dumps(item)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"An item of a session must be JSON: {error}. Nothing was added.") from error
