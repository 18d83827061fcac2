"""Guest logs: data of other libraries in the database. Each of their sessions or threads is a log of entries.

    place = GuestPlace("openai", "", "tea")
    store.write(lambda tx: append_entries(tx, make_guest(tx, place), [GuestEntry(data='{"role": "user"}')]))
    store.write(lambda tx: fork_guest(tx, place, GuestPlace("openai", "", "coffee")))     # one row, whatever the length

A fork begins with its parent's entries up to one of these, and its own entries continue the numbers. Entries that other
logs inherit are never deleted: if a log must lose such entries, a new log gets its name, and the old log stays without
a name. The old log is deleted together with the last log that inherits from it.

Each change of a log first locks its row, then the rows of its parents, upwards.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ikigai_actors.arguments import check_type
from ikigai_actors.errors import BadInput, StoreConflict
from ikigai_actors.store.base import Transaction

_EVERY = 2**62
"""A limit that no number of entries reaches."""

GUEST_NAME = 1_000
"""The most characters of a name."""


class GuestPlace(NamedTuple):
    """The place of a guest log: library, scope and name."""

    guest: str
    """The name of the library."""
    scope: str
    """The name of a group of logs."""
    name: str


class GuestLog(NamedTuple):
    """A guest log. Readers see its parent's entries up to ``upto``, then its own entries, with higher numbers."""

    id: str
    guest: str
    scope: str
    name: str | None
    """The name of the log; None once another log has it."""
    parent: str | None
    upto: int
    head: int
    """The highest number that an entry can have."""
    data: str
    """A summary by the library; empty for none."""
    changed_at: int
    """The time of the latest change, in milliseconds since 1970. Each change increases it."""


class GuestEntry(NamedTuple):
    """An entry of a guest log. Missing values are filled in when it is appended."""

    log: str = ""
    id: int = 0
    part: str = ""
    """The library's namespace of the entry."""
    about: str = ""
    """The subject of the entry."""
    key: str = ""
    """The key of the entry within its subject."""
    tag: str | None = None
    """A tag by which it is found in all logs; None for none."""
    data: str | None = None
    """The entry's JSON; None hides all earlier entries about the same subject."""
    body: bytes | None = None


def check_guest_name(value: object, what: str) -> str:
    """Check that a name can be stored in both kinds of databases, and return it. Raises `BadInput`."""
    name = check_type(value, str, what, "text")
    if not name or len(name) > GUEST_NAME or "\0" in name or any("\ud800" <= sign <= "\udfff" for sign in name):
        raise BadInput(f"Expected {what} to be 1 to {GUEST_NAME:,} characters without NUL; got {name[:40]!r}.")
    return name


def find_guest(tx: Transaction, place: GuestPlace) -> GuestLog | None:
    """Return the log with this name; None if there is none."""
    return _one(tx.run("guest_log", **place._asdict()))


def guests_within(tx: Transaction, guest: str, scope: str) -> list[GuestLog]:
    """Return the logs of one scope, by name."""
    return [GuestLog._make(row) for row in tx.run("guest_logs", guest=guest, scope=scope)]


def lock_guest(tx: Transaction, place: GuestPlace) -> GuestLog | None:
    """Lock the log of a place, and return it; None if there is none.

    The query runs up to twice: after waiting for a transaction that passed the name to another log, the first one finds
    nothing.
    """
    return _one(tx.run("lock_guest_log", **place._asdict())) or _one(tx.run("lock_guest_log", **place._asdict()))


def make_guest(tx: Transaction, place: GuestPlace) -> GuestLog:
    """Lock the log of a place, and return it. A missing log is made."""
    if (there := lock_guest(tx, place)) is None:
        tx.run("make_guest_log", id=secrets.token_hex(16), parent=None, upto=0, **place._asdict())
        there = lock_guest(tx, place)
    if there is None:
        raise StoreConflict(f"Log {place.name!r} was made and deleted by others meanwhile. Try again.")
    return there


def append_entries(tx: Transaction, log: GuestLog, entries: Sequence[GuestEntry], data: str | None = None) -> GuestLog:
    """Append entries to a locked log; return the changed log. ``data`` replaces the library's summary of the log."""
    rows = [entry._replace(log=log.id, id=number) for number, entry in enumerate(entries, log.head + 1)]
    tx.append(rows, "guest_entries")
    return _move(tx, log._replace(head=log.head + len(rows), data=log.data if data is None else data))


def latest_entries(tx: Transaction, log: GuestLog, most: int | None = None) -> list[GuestEntry]:
    """Return the latest entries that a log shows, in order."""
    return [
        GuestEntry._make(row)
        for row in reversed(tx.run("guest_entries", log=log.id, most=_EVERY if most is None else most))
    ]


def entries_about(tx: Transaction, log: GuestLog, part: str, subject: str) -> dict[str, GuestEntry]:
    """Return the latest entry for each key that a log has about a subject."""
    shown: dict[str, GuestEntry] = {}
    for entry in map(GuestEntry._make, tx.run("guest_entries_about", log=log.id, part=part, about=subject)):
        if entry.data is None:
            shown.clear()
        else:
            shown[entry.key] = entry
    return shown


def outline_of(
    tx: Transaction,
    log: GuestLog,
    key: str = "",
    part: str | None = None,
    before: str | None = None,
    most: int = _EVERY,
) -> list[GuestEntry]:
    """Return the latest entry with a key about each subject of a log, without bodies, in descending order of subjects.

    Args:
        key: the key.
        part: only in this namespace; None for all.
        before: only subjects that come before this one.
        most: the most rows to read. Fewer subjects may come back.
    """
    shown: dict[tuple[str, str], GuestEntry] = {}
    rows = tx.run("guest_outline", log=log.id, key=key, part=part, before=before, most=most)
    for entry in map(GuestEntry._make, rows):
        shown.setdefault((entry.part, entry.about), entry)
    return [entry for entry in shown.values() if entry.data is not None]


def keys_among(tx: Transaction, log: GuestLog, keys: Iterable[str], part: str = "", subject: str = "") -> set[str]:
    """Return those of these keys under which a log has entries about a subject."""
    return {key for (key,) in tx.run("guest_known_keys", log=log.id, part=part, about=subject, keys=list(keys))}


def forget_keys(tx: Transaction, log: GuestLog, part: str, subject: str, keys: Sequence[str]) -> None:
    """Delete a locked log's own entries with these keys, which later ones replace, unless other logs show them."""
    tx.run(
        "delete_guest_keys",
        log=log.id,
        part=part,
        about=subject,
        keys=list(keys),
        above=max(_shared(tx, log), log.upto),
    )


def fork_guest(tx: Transaction, source: GuestPlace, target: GuestPlace, at: int | None = None) -> GuestLog:
    """Make a log that begins with another log's entries up to one of them, or with all of them. Writes one row.

    Raises `BadInput` when there is no such source or entry, or when the target exists already.
    """
    log = lock_guest(tx, source)
    if log is None:
        raise BadInput(f"There is no {source.name!r} to branch from.")
    at = log.head if at is None else at
    if not 0 <= at <= log.head:
        raise BadInput(f"Expected a position from 0 to {log.head} of {source.name!r}; got {at}.")
    if find_guest(tx, target) is not None:
        raise BadInput(f"There is a {target.name!r} already. Delete it first, or choose another name.")
    return _begin(tx, log, target, at)


def cut_guest(tx: Transaction, log: GuestLog, at: int) -> None:
    """Delete the entries of a locked log after position ``at``.

    If other logs begin with those entries, the entries are kept, and this log gets a new id.
    """
    shared = _shared(tx, log)
    if shared > at:
        tx.run("unname_guest_log", id=log.id)
        _begin(tx, log, GuestPlace(log.guest, log.scope, str(log.name)), at)
        return
    tx.run("delete_guest_entries", log=log.id, above=max(at, log.upto))
    holder = _holder(tx, log, at)
    if holder is None or holder.id != log.id:
        _move(tx, log._replace(parent=None if holder is None else holder.id, upto=at, head=at))
        if log.parent is not None:
            _collect(tx, log.parent)
    else:
        _move(tx, log._replace(head=at))


def forget_things(tx: Transaction, log: GuestLog, things: Iterable[tuple[str, str]]) -> None:
    """Hide all entries about some subjects, each with its namespace, from the readers of a locked log.

    Its own entries are deleted. Entries that other logs show, or that come from its parent, are hidden by a new entry.
    """
    above = max(_shared(tx, log), log.upto)
    hidden = []
    for part, subject in things:
        tx.run("delete_guest_entries_about", log=log.id, part=part, about=subject, above=above)
        if entries_about(tx, log, part, subject):
            hidden.append(GuestEntry(part=part, about=subject))
    append_entries(tx, log, hidden)


def forget_tagged(tx: Transaction, guest: str, tags: Sequence[str]) -> None:
    """Delete the entries with any of these tags, and all others about the same subjects, in all logs of a library."""
    for log, part, subject in sorted(set(tx.run("guest_tagged", guest=guest, tags=list(tags)))):
        for (heir,) in tx.run("guest_heirs", id=log):
            tx.run("delete_guest_entries_about", log=heir, part=part, about=subject, above=0)


def drop_guest(tx: Transaction, log: GuestLog) -> None:
    """Delete a locked log. Entries with which other logs begin stay until the last of these is deleted."""
    tx.run("unname_guest_log", id=log.id)
    _collect(tx, log.id)


def _collect(tx: Transaction, uuid: str) -> None:
    """Delete a log that has no name and with which no other log begins; then check its parent in the same way."""
    log = _one(tx.run("lock_guest_log_by_id", id=uuid))
    while log is not None and log.name is None and not _shared(tx, log):
        tx.run("delete_guest_entries", log=log.id, above=0)
        tx.run("delete_guest_log", id=log.id)
        log = None if log.parent is None else _one(tx.run("lock_guest_log_by_id", id=log.parent))


def _begin(tx: Transaction, log: GuestLog, place: GuestPlace, at: int) -> GuestLog:
    holder = _holder(tx, log, at)
    uuid, parent = secrets.token_hex(16), None if holder is None else holder.id
    tx.run("make_guest_log", id=uuid, parent=parent, upto=at, **place._asdict())
    made = lock_guest(tx, place)
    if made is None or made.id != uuid:
        raise StoreConflict(f"Another process made {place.name!r} at the same moment. Nothing was changed; try again.")
    return made


def _holder(tx: Transaction, log: GuestLog, at: int) -> GuestLog | None:
    """Return the locked log that has an entry as its own: this log, or one of its ancestors. None for position 0."""
    holder: GuestLog | None = log
    while holder is not None and at <= holder.upto:
        holder = None if holder.parent is None else _one(tx.run("lock_guest_log_by_id", id=holder.parent))
    return holder


def _shared(tx: Transaction, log: GuestLog) -> int:
    """Return the position of the last own entry with which another log begins; 0 if no log begins with one."""
    return int(tx.run("guest_shared", id=log.id)[0][0] or 0)


def _move(tx: Transaction, log: GuestLog) -> GuestLog:
    tx.run("move_guest_log", id=log.id, parent=log.parent, upto=log.upto, head=log.head, data=log.data)
    return log


def _one(rows: Sequence[tuple[object, ...]]) -> GuestLog | None:
    return GuestLog._make(rows[0]) if rows else None
