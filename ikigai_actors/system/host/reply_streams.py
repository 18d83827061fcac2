"""Reply streams: writes the replies in progress of a host as rows, while other processes want to see them.

The states of the writer:

    resting      no other process listens: no thread, no row, and no cost for a piece of a reply
    listened to  a few times a second the requests in flight are read. One transaction of the journal appends the text
                 that they have received since the last time, and deletes void rows
    leaving      no process listens any longer, or the system closes: the host's rows are deleted

The writer polls the requests, so a listener that comes in the middle of a reply gets all of the reply. A reply that
ends between two polls leaves no row, and comes as its message alone; slow commits delay the next poll (`APART`). The
position in a reply advances only after a commit, so text that a failure has lost is written the next time. A host that
dies leaves its rows, which are void (`ikigai_actors.records.messages.pieces`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import Threads
from ikigai_actors.agent.jobs import ModelRequest
from ikigai_actors.records.messages.pieces import AppendPieces, ClearPieces, NewPieces, WrittenPieces
from ikigai_actors.store.writer import Writer

EVERY = 0.1
"""Seconds between two rows of a reply."""

APART = 10
"""The least pause before the next write, as a multiple of the time that the last write took, so that writes take a
small share of the time."""

CLEAR_EVERY = 2.0
"""Seconds after which void rows are deleted, while no others are to be written."""


@dataclass(slots=True)
class _Told:
    number: int
    deltas: int = 0


class ReplyStreams(Service):
    """Writes the replies in progress of one host as rows, while other processes want to see them."""

    def __init__(
        self,
        requests: Callable[[], Sequence[ModelRequest]],
        writer: Writer,
        host: str,
        clock: Clock,
        threads: Threads,
    ) -> None:
        """Make the writer. Its thread begins with the first listener.

        Args:
            requests: gives the model requests in flight.
            writer: commits the rows.
            host: the id of the host.
            clock: says how long somebody listens.
        """
        super().__init__("ikigai-reply-streams", threads)
        self._requests, self._writer, self._host, self._clock = requests, writer, host, clock
        self._until = float("-inf")  # somebody listens until then
        self._told: dict[ModelRequest, _Told] = {}
        self._over: dict[int, str] = {}  # replies that are over and may have rows, each with its agent
        self._rows = self._replies = 0
        self._clear_due = 0.0

    def listen(self, seconds: float) -> None:
        """Note that other processes listen for this many seconds from now; 0 for none. Thread-safe; never waits."""
        until = self._clock.monotonic() + seconds
        with self._changed:
            begins = seconds > 0 and not self._is_heard()
            self._until = until
            if begins:
                self._changed.notify()
        if begins:
            self.start()

    def _is_heard(self) -> bool:
        return self._clock.monotonic() < self._until

    def run(self) -> None:
        """Write rows while another process listens, until the thread is stopped."""
        while self.awaits(self._is_heard):
            taken = 0.0
            while self.pause(max(EVERY, APART * taken)) and self._is_heard():
                began = self._clock.monotonic()
                self.attempt(self.write)
                taken = self._clock.monotonic() - began
            self._told, self._over = {}, {}
            if self._rows:
                self._writer.ask(ClearPieces(self._host))  # not waited for: the system may be closing

    def write(self) -> None:
        """Write the new text of replies in progress as rows, and delete the rows of replies that are over.

        Raises the errors of `Writer.perform`.
        """
        new, ends = self._new()
        now = self._clock.monotonic()
        clears = bool(self._over) and (bool(new) or now >= self._clear_due)
        if not new and not clears:
            return
        self._clear_due = now + CLEAR_EVERY
        over = dict(self._over) if clears else {}
        unit = AppendPieces(self._host, self._rows + 1, new, frozenset(over.values()))
        written: WrittenPieces = self._writer.perform(unit)
        self._rows += len(written.replies)
        for stream in self._told.values():
            if stream.number in written.replies:
                stream.deltas = ends[stream.number]
        for reply in over.keys() - written.left:
            del self._over[reply]

    def _new(self) -> tuple[list[NewPieces], dict[int, int]]:
        """Return the text since the latest rows, and the number of deltas received of each reply."""
        for call in [call for call in self._told if call.is_over()]:
            reply = self._told.pop(call)
            if reply.deltas:
                self._over[reply.number] = call.agent
        new, ends = list[NewPieces](), dict[int, int]()
        for call in self._requests():
            if not call.at or call.is_over():
                continue
            known = self._told.get(call)
            pieces, end = call.pieces(0 if known is None else known.deltas)
            if not pieces:
                continue
            if known is None:
                self._replies += 1
                known = self._told[call] = _Told(self._replies)
            new.append(NewPieces(call.agent, known.number, call.at, pieces, call.is_over))
            ends[known.number] = end
        return new, ends
