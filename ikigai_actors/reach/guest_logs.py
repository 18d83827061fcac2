"""Guest logs for other libraries: each method is one transaction, on a thread or beside an event loop.

    logs = GuestLogs(system)
    logs.append_new(GuestPlace("openai", "", "tea"), [GuestEntry(data='{"role": "user"}')])
    await logs.ask(lambda: logs.entries(place))

Guest logs are in the database of the agents (see `ikigai_actors.records.guests`), but no agent reads them.
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
"""The latest entry for each key that a log has about a subject."""

ShownOf = Callable[[GuestEntry], Shown]
"""Returns the latest entries of a log about the same subject as an entry."""

GuestSystem = System | AsyncSystem[System]
"""A system that runs agents or is attached, with sync or async handles."""


def guest_place(guest: str, scope: str, name: object, what: str) -> GuestPlace:
    """Return the place of a log. Raises `BadInput` for an invalid name; ``what`` names the argument."""
    return GuestPlace(guest, scope, guests.check_guest_name(name, what))


class GuestLogs:
    """Reads and writes the guest logs of an open system. The system closes the database."""

    def __init__(self, system: GuestSystem) -> None:
        """Use the database of a system. Raises `BadInput` for any other object."""
        inner: object = system.sync if isinstance(system, AsyncSystem) else system
        if not isinstance(inner, System):
            raise BadInput(f"Expected system to be an open system; got {shown(inner)}.")
        self._store, self._beside = inner._store, inner._beside

    def ask(self, call: Callable[[], T]) -> Future[T]:
        """Run a reading call on another thread; return its future."""
        return self._beside.read(call)

    def ask_in_order(self, call: Callable[[], T]) -> Future[T]:
        """Run a call on another thread, after all earlier ones. Cancelling the wait does not cancel the call."""
        done = Future[T]()
        self._beside.post(lambda: done.settle(call()), done)
        return done

    # Reading

    def entries(self, place: GuestPlace, most: int | None = None) -> list[GuestEntry] | None:
        """Return the latest entries of a log, in order; None if there is no such log."""

        def read(tx: Transaction) -> list[GuestEntry] | None:
            log = guests.find_guest(tx, place)
            return None if log is None else guests.latest_entries(tx, log, most)

        return self._store.read(read)

    def within(self, guest: str, scope: str) -> list[GuestLog]:
        """Return the guest logs of one scope of a library, by name."""
        return self._store.read(lambda tx: guests.guests_within(tx, guest, scope))

    def about(self, log: GuestLog, entry: GuestEntry) -> Shown:
        """Return the latest entry for each key in a log that is about the same subject as an entry."""
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
        """Return the subjects of logs, each by its latest entry without a key, which comes without its body.

        The subjects of a log are sorted by name, the last name first.

        Args:
            guest: the library; if ``place`` is None, all of its logs whose scope is empty are read.
            place: a single log; None for all.
            part: only in this namespace; None for all.
            before: only subjects whose name sorts before this one; None for all.
            only: only this subject; None for all.
            most: the most subjects of each log; None for all.
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
        """Append entries, all or none. The first entries make the log."""
        self._store.write(lambda tx: guests.append_entries(tx, guests.make_guest(tx, place), entries))

    def append_new(
        self,
        place: GuestPlace,
        entries: Sequence[GuestEntry],
        summary: Callable[[GuestLog, Sequence[GuestEntry]], str | None] = lambda log, new: None,
    ) -> None:
        """Append the entries whose key the log does not show yet. An entry without a key is always new.

        Args:
            place: the log, which is made if it is not there.
            entries: the entries, all about one subject.
            summary: returns the log's new summary, from the log and the new entries; None leaves it unchanged.
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
        """Append entries about one subject, which replace the entries with the same keys."""

        def work(tx: Transaction) -> None:
            log = guests.make_guest(tx, place)
            if entries:
                guests.forget_keys(tx, log, entries[0].part, entries[0].about, [entry.key for entry in entries])
                guests.append_entries(tx, log, entries)

        self._store.write(work)

    def pop(self, place: GuestPlace) -> GuestEntry | None:
        """Remove the latest entry from a log, and return it; None if the log is empty.

        Other logs that begin with the same entries keep the entry.
        """

        def work(tx: Transaction) -> GuestEntry | None:
            log = guests.lock_guest(tx, place)
            latest = [] if log is None else guests.latest_entries(tx, log, 1)
            if log is None or not latest:
                return None
            guests.cut_guest(tx, log, latest[0].id - 1)
            return latest[0]

        return self._store.write(work)

    def branch(self, source: GuestPlace, target: GuestPlace, at: int | None = None) -> None:
        """Make a new log that begins with another log's entries; this writes one row.

        Raises `BadInput`; see `guests.fork_guest`.
        """
        self._store.write(lambda tx: guests.fork_guest(tx, source, target, at))

    def drop(self, place: GuestPlace, below: tuple[str, str] | None = None) -> None:
        """Delete a log; with ``below``, also all logs of that library and scope. Copies of the log keep its entries."""

        def work(tx: Transaction) -> None:
            others = [] if below is None else guests.guests_within(tx, *below)
            for each in (place, *(GuestPlace(log.guest, log.scope, str(log.name)) for log in others)):
                if (log := guests.lock_guest(tx, each)) is not None:
                    guests.drop_guest(tx, log)

        self._store.write(work)

    def forget_tagged(self, guest: str, tags: Sequence[str]) -> None:
        """Delete the entries with these tags, and all others about the same subjects, in each log that shows them."""
        self._store.write(lambda tx: guests.forget_tagged(tx, guest, tags))

    def keep_only(
        self, place: GuestPlace, needed: Callable[[Mapping[str, GuestEntry], ShownOf], Collection[str]]
    ) -> None:
        """Let a log show only the subjects that are needed.

        Args:
            place: the log.
            needed: returns the needed subjects, from the latest entries about each subject of one namespace, the latest
                first.
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
