"""Guest logs as other libraries use them: each method is one transaction, from a thread or beside an event loop.

    logs = GuestLogs(system)
    logs.append_new(GuestPlace("openai", "", "tea"), [GuestEntry(data='{"role": "user"}')])
    await logs.ask(lambda: logs.entries(place))

They lie beside the agents, as `ikigai_actors.records.guests` says, and no agent reads them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.records import guests
from ikigai_actors.records.guests import GuestEntry, GuestLog, GuestPlace
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.aio import AsyncSystem
from ikigai_actors.system.handles.ref import System

T = TypeVar("T")

Shown = Mapping[str, GuestEntry]
"""The latest entry of each key that a log has about something."""

ShownOf = Callable[[GuestEntry], Shown]
"""Gives what a log shows about the same as an entry."""

GuestSystem = System | AsyncSystem[System]
"""A system that runs agents, or is attached, of either face."""


def guest_place(guest: str, scope: str, name: object, what: str) -> GuestPlace:
    """The place of a log. Raises `BadInput` for a name that cannot be one; ``what`` says which argument it is."""
    return GuestPlace(guest, scope, guests.check_guest_name(name, what))


class GuestLogs:
    """Reads and writes the guest logs of an open system. The system closes the database."""

    def __init__(self, system: GuestSystem) -> None:
        """Use the database of a system. Raises `BadInput` for anything else."""
        inner: object = system.sync if isinstance(system, AsyncSystem) else system
        if not isinstance(inner, System):
            raise BadInput(f"Expected system to be an open system; got {shown(inner)}.")
        self._store, self._beside = inner._store, inner._beside

    def ask(self, call: Callable[[], T]) -> Future[T]:
        """Have a call that only reads made on another thread."""
        return self._beside.read(call)

    def ask_in_order(self, call: Callable[[], T]) -> Future[T]:
        """Have a call made on another thread after all that were asked for before. A cancelled wait leaves it."""
        done = Future[T]()
        self._beside.post(lambda: done.settle(call()), done)
        return done

    # Reading

    def entries(self, place: GuestPlace, most: int | None = None) -> list[GuestEntry] | None:
        """The latest entries of a log, the oldest of them first; None for a log that is not there."""

        def read(tx: Transaction) -> list[GuestEntry] | None:
            log = guests.find_guest(tx, place)
            return None if log is None else guests.latest_entries(tx, log, most)

        return self._store.read(read)

    def within(self, guest: str, scope: str) -> list[GuestLog]:
        """The logs of one scope, by name."""
        return self._store.read(lambda tx: guests.guests_within(tx, guest, scope))

    def about(self, log: GuestLog, entry: GuestEntry) -> Shown:
        """The latest entry that a log has about the same as an entry."""
        return self._store.read(lambda tx: guests.entries_about(tx, log, entry.part, entry.about))

    def outlines(
        self,
        guest: str,
        place: GuestPlace | None,
        part: str | None = None,
        before: str | None = None,
        only: str | None = None,
        most: int | None = None,
    ) -> list[tuple[GuestLog, list[GuestEntry]]]:
        """The things that logs show, by their entries without a key and a body; each log's backwards.

        Args:
            guest: the library, all of whose logs without a scope are looked at where no place is given.
            place: one log.
            part: in one part, or in all.
            before: about what comes before this.
            only: about this alone.
            most: how many things at most.
        """

        def read(tx: Transaction) -> list[tuple[GuestLog, list[GuestEntry]]]:
            if place is None:
                logs = guests.guests_within(tx, guest, "")
            else:
                log = guests.find_guest(tx, place)
                logs = [] if log is None else [log]
            return [(log, _outline(tx, log, part, before, only, most)) for log in logs]

        return self._store.read(read)

    # Writing

    def append(self, place: GuestPlace, entries: Sequence[GuestEntry]) -> None:
        """Append entries, all or none of them; the first ones make the log."""
        self._store.write(lambda tx: guests.append_entries(tx, guests.make_guest(tx, place), entries))

    def append_new(
        self,
        place: GuestPlace,
        entries: Sequence[GuestEntry],
        summary: Callable[[GuestLog, Sequence[GuestEntry]], str | None] = lambda log, new: None,
    ) -> None:
        """Append those entries whose key the log does not show yet; an entry without a key is always new.

        Args:
            place: the log, which is made if it is not there.
            entries: all of them about one thing.
            summary: gives the log's summary, by the log and the new entries; None leaves it.
        """

        def work(tx: Transaction) -> None:
            log = guests.make_guest(tx, place)
            part, subject = next(((entry.part, entry.about) for entry in entries), ("", ""))
            there = guests.keys_among(tx, log, [entry.key for entry in entries if entry.key], part, subject)
            new = []
            for entry in entries:
                if entry.key not in there:
                    new.append(entry)
                    there |= {entry.key} - {""}
            guests.append_entries(tx, log, new, summary(log, new))

        self._store.write(work)

    def put(self, place: GuestPlace, entries: Sequence[GuestEntry]) -> None:
        """Append entries about one thing, which replace those of the same keys."""

        def work(tx: Transaction) -> None:
            log = guests.make_guest(tx, place)
            if entries:
                guests.forget_keys(tx, log, entries[0].part, entries[0].about, [entry.key for entry in entries])
                guests.append_entries(tx, log, entries)

        self._store.write(work)

    def pop(self, place: GuestPlace) -> GuestEntry | None:
        """Take the latest entry off a log; None when it has none. What others begin with stays for them."""

        def work(tx: Transaction) -> GuestEntry | None:
            log = guests.lock_guest(tx, place)
            latest = [] if log is None else guests.latest_entries(tx, log, 1)
            if log is None or not latest:
                return None
            guests.cut_guest(tx, log, latest[0].id - 1)
            return latest[0]

        return self._store.write(work)

    def branch(self, source: GuestPlace, target: GuestPlace, at: int | None = None) -> None:
        """Let a new log begin with what another one holds: one row. Raises `BadInput`; see `guests.fork_guest`."""
        self._store.write(lambda tx: guests.fork_guest(tx, source, target, at))

    def drop(self, place: GuestPlace, below: tuple[str, str] | None = None) -> None:
        """Delete a log, and those of a library and a scope with it. What others begin with stays for them."""

        def work(tx: Transaction) -> None:
            others = [] if below is None else guests.guests_within(tx, *below)
            for each in (place, *(GuestPlace(log.guest, log.scope, str(log.name)) for log in others)):
                if (log := guests.lock_guest(tx, each)) is not None:
                    guests.drop_guest(tx, log)

        self._store.write(work)

    def forget_tagged(self, guest: str, tags: Sequence[str]) -> None:
        """Delete what is tagged with any of these, and all that is about the same, in each log that shows it."""
        self._store.write(lambda tx: guests.forget_tagged(tx, guest, tags))

    def keep_only(
        self, place: GuestPlace, needed: Callable[[Mapping[str, GuestEntry], ShownOf], Collection[str]]
    ) -> None:
        """Let a log show nothing about what is not needed.

        Args:
            place: the log.
            needed: says what is, by the latest entry about each thing of one part, the latest thing first.
        """

        def work(tx: Transaction) -> None:
            if (log := guests.lock_guest(tx, place)) is None:
                return
            parts: dict[str, dict[str, GuestEntry]] = {}
            for entry in guests.outline_of(tx, log):
                parts.setdefault(entry.part, {})[entry.about] = entry

            def look_at(entry: GuestEntry) -> Shown:
                return guests.entries_about(tx, log, entry.part, entry.about)

            gone = ((part, about) for part, those in parts.items() for about in those.keys() - needed(those, look_at))
            guests.forget_things(tx, log, sorted(gone))

        self._store.write(work)


def _outline(
    tx: Transaction, log: GuestLog, part: str | None, before: str | None, only: str | None, most: int | None
) -> list[GuestEntry]:
    if only is not None:
        parts: Iterable[str]
        parts = [part] if part is not None else sorted({entry.part for entry in guests.outline_of(tx, log)})
        shown = [guests.entries_about(tx, log, each, only).get("") for each in parts]
        return [entry for entry in shown if entry is not None and (before is None or entry.about < before)]
    if most is not None and (outline := guests.outline_of(tx, log, part=part, before=before, most=most)):
        return outline
    return guests.outline_of(tx, log, part=part, before=before)[:most]
