"""Pieces: the received parts of replies in progress, as rows for listeners in other processes.

    write_alone(store, Listen("door"))                          # renewed while somebody there listens
    journal.perform(AppendPieces(host, 1, [NewPieces(...)]))    # the host of the agent, again and again
    store.read(lambda tx: pieces_behind(tx, host, 17))          # the listener, after the place where it was

A row is appended and never changed; further text of the reply gets a row of its own. A row becomes *void*, so that
readers skip it, when its reply is over: a message after ``at`` ends the reply, the turn is closed, the agent is dead,
or another host runs it. So listeners cost the transaction that commits a reply no further writes, and a reader of rows
and messages in one transaction never finds a piece of a committed reply. The host deletes its void rows later; the next
host deletes those of an ended host.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.messages.messages import BOUNDARIES
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

LISTENS_FOR = 15.0
"""The seconds for which a listener counts after it has registered."""

ReplyPiece = tuple[str, str]
"""A part of a reply: its kind, ``text`` or ``thinking``, and its text."""

_ENDS = sorted(BOUNDARIES)


class NewPieces(NamedTuple):
    """The text of a reply that was received since its latest row."""

    agent: str
    """The uuid of the agent that receives the reply."""
    reply: int
    """The number of the reply on its host."""
    at: int
    """The id of the message that the reply continues."""
    pieces: Sequence[ReplyPiece]
    is_over: Callable[[], bool]
    """Returns whether the reply, or its error, was passed to the agent. Called before a row is written."""


class PiecesRow(NamedTuple):
    """A row of a reply in progress."""

    id: int
    """The number of the row on its host."""
    agent: str
    """The uuid of the agent."""
    reply: int
    """The number of the reply on its host."""
    at: int
    """The id of the message that the reply continues."""
    pieces: list[ReplyPiece]


class WrittenPieces(NamedTuple):
    """The answer of `AppendPieces`: the replies that got rows, and the replies whose rows remain."""

    replies: Sequence[int]
    """The replies of which rows were written."""
    left: frozenset[int]
    """The replies that still have rows; empty if nothing was to be deleted."""


class AppendPieces(Unit):
    """Append a row for each reply in progress, and delete void rows. Answered with `WrittenPieces`.

    The journal is the one writer of a host, so ids are in the order of commits. A reply that has ended when the journal
    writes this unit gets no row: the unit that commits the reply comes after this one.
    """

    __slots__ = ("_agents", "_host", "_next", "_rows")

    def __init__(self, host: str, number: int, new: Sequence[NewPieces], over: Collection[str] = ()) -> None:
        """Encode the rows on the calling thread rather than the journal's.

        Args:
            host: the id of the host.
            number: the id of the first row.
            new: the received texts.
            over: the uuids of the agents whose void rows are deleted.
        """
        self._host, self._next, self._agents = host, number, list(over)
        self._rows = [(piece, json.dumps(piece.pieces)) for piece in new]

    def write(self, tx: Transaction, locked: LockedRows) -> WrittenPieces:
        left = frozenset[int]()
        if self._agents:
            tx.run("delete_void_pieces", host=self._host, agents=self._agents, ends=_ENDS)
            left = frozenset(reply for (reply,) in tx.run("replies_in_pieces", host=self._host))
        rows = [(piece, body) for piece, body in self._rows if not piece.is_over()]
        tx.append(
            [(self._host, self._next + place, *piece[:3], body) for place, (piece, body) in enumerate(rows)], "pieces"
        )
        # never none: that would mean anybody
        locked.others.update(self._agents, (piece.agent for piece, _ in self._rows))
        return WrittenPieces([piece.reply for piece, _ in rows], left)


@dataclass(frozen=True, slots=True)
class ClearPieces(Unit):
    """Delete all rows of a host, because nobody listens any more."""

    host: str

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("delete_pieces", host=self.host)
        locked.others.add(self.host)  # nobody has to look at agents for it


@dataclass(frozen=True, slots=True)
class Listen(Unit):
    """Register a process as a listener for `LISTENS_FOR` seconds. With ``seconds=0``, end its registration.

    The hosts are notified, as of every commit.
    """

    who: str
    """The id of the listener: of a host, or random."""
    seconds: float = LISTENS_FOR
    replies: bool = True
    """Whether it wants the pieces of replies. Otherwise it is only present, and nothing is written for it."""

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        if self.seconds:
            tx.run("listen", id=self.who, ms=int(self.seconds * 1000), replies=int(self.replies))
        else:
            tx.run("listen_no_more", id=self.who)
        locked.others.add(self.who)  # a hint with a name that is no agent's: nobody has to look at agents for it


def listened_for(tx: Transaction, host: str) -> float:
    """Return for how many seconds from now another process than this host wants pieces of replies; 0 for none."""
    [(left,)] = tx.run("listened", id=host)
    return max(0, left or 0) / 1000


def host_is_needed(tx: Transaction, host: str, within: float) -> bool:
    """Return whether a host may not go to sleep: another process is present, or a timer or the like is due soon.

    ``within`` is the number of seconds to look ahead. Turns in progress do not count, because the host knows its own.
    """
    [(used,)] = tx.run("host_is_needed", id=host, ms=int(within * 1000))
    return bool(used)


def pieces_behind(tx: Transaction, host: str, after: int) -> list[PiecesRow]:
    """Return the rows of a host with ids above ``after``, for replies that are still in progress; in order."""
    rows = tx.run("pieces_behind", host=host, after=after, ends=_ENDS)
    return [PiecesRow(number, agent, reply, at, decode_pieces(body)) for number, agent, reply, at, body in rows]


def decode_pieces(body: str) -> list[ReplyPiece]:
    """Return the pieces of a row; none when it cannot be read, for example from another version."""
    try:
        return [(str(kind), str(text)) for kind, text in json.loads(body)]
    except (ValueError, TypeError, RecursionError):
        return []


def delete_pieces_of_ended(tx: Transaction) -> None:
    """Delete the rows that ended hosts have left."""
    tx.run("delete_pieces_of_ended")
