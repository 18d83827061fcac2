"""The board on which a host writes the heartbeats of its agents, for readers in other processes.

    resting    no agent has sent a heartbeat since the latest check: no timer, no check, no write
    looking    every `SIGNS_EVERY` seconds: checks only agents that have sent a heartbeat, or are on the board
    writing    one unit of the journal writes the changes as one row; the next check is `SIGNS_EVERY` after its commit

Only a turn that is in progress at two checks is published. So short turns cost no write; their last messages show the
time of their heartbeat. The row has the absolute time of the latest heartbeat, so a silent agent needs no further
write. A write that is lost with the process does no harm (`ikigai_actors.records.hosts.host_signs`). Without
heartbeats the board rests, so that no timer keeps a simulation going in which nothing else can happen.
"""

import threading
from collections.abc import Callable, Mapping

from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.agent.turn.state import WORKING
from ikigai_actors.providers.base import Request
from ikigai_actors.records.hosts.host_signs import HostSigns, PublishedSign, PublishSigns, encode_signs, first_signs
from ikigai_actors.store.journal import CommitResult, Journal
from ikigai_actors.system.host.processes import ProcessTable

SIGNS_EVERY = 2.0
"""Seconds between two looks."""


class SignBoard(Instrument):
    """Writes the heartbeats of one host's agents as a row. Any thread may report heartbeats; one thread writes."""

    _is_ours = True

    def __init__(
        self,
        processes: ProcessTable,
        journal: Journal,
        host: str,
        clock: Clock,
        post: Callable[[Callable[[], object]], object],
        after: Callable[[float, Callable[[], object]], object],
    ) -> None:
        """Make the board of a host.

        Args:
            journal: commits what is published.
            host: the id of the host.
            clock: gives the times.
            post: has the thread call a function; from any thread.
            after: lets the thread call a function in this many seconds; from that thread.
        """
        self._processes, self._journal, self._host, self._clock = processes, journal, host, clock
        self._post, self._after = post, after
        self._lock, self._rests = threading.Lock(), True
        self._heard = set[str]()  # who has given signs since the latest look, by uuid
        self._young: Mapping[str, int] = {}  # the turns that were seen at one look only, by agent
        self._told: Mapping[str, PublishedSign] = {}  # of all whose turns were seen at two
        self._written: Mapping[str, PublishedSign] = {}

    def request_begins(self, agent: Tally, request: Request) -> None:
        self._hear(agent)

    def piece_comes(self, agent: Tally, size: int) -> None:
        self._hear(agent)

    def tool_begins(self, agent: Tally, tool: str, call: str, arguments: Mapping[str, object]) -> None:
        self._hear(agent)

    def tool_ends(self, agent: Tally, tool: str, call: str, result: str | None) -> None:
        self._hear(agent)

    def wait_ends(self, agent: Tally, call: str) -> None:
        self._hear(agent)

    def state_changes(self, agent: Tally, state: str, turn: int) -> None:
        self._hear(agent)

    def _hear(self, agent: Tally) -> None:
        self._heard.add(agent.uuid)
        if self._rests:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            if not self._rests:
                return
            self._rests = False
        self._post(self._look_later)

    def _look_later(self) -> None:
        self._after(SIGNS_EVERY, self._look)

    def _look(self) -> None:
        self._told, self._young = self._signs({self._heard.pop() for _ in range(len(self._heard))})
        signs = first_signs(self._told)
        if signs != self._written:
            self._written = signs
            text = encode_signs(HostSigns(self._clock.now_ms(), signs))
            self._journal.submit(PublishSigns(self._host, text), self._done)
        else:
            self._go_on()

    def _signs(self, heard: set[str]) -> tuple[dict[str, PublishedSign], dict[str, int]]:
        """Return the heartbeats to publish now by agent, and the turns that are too new to be published."""
        signs_now, young, now = dict[str, PublishedSign](), dict[str, int](), self._clock.now_ms()
        for uuid in sorted({*self._told, *self._young, *heard}):
            actor = self._processes.get(uuid)
            if actor is None or not (turn := actor.state.turn) or actor.state.phase not in WORKING:
                continue
            before = self._told.get(uuid)
            if before is not None and before.turn != turn:
                before = None
            if before is None and self._young.get(uuid) != turn:
                young[uuid] = turn
                continue
            sign = actor.tally.sign()
            is_known = before is not None and uuid not in heard
            at = before.at if before is not None and is_known else now - int(sign.seconds * 1_000)
            signs_now[uuid] = PublishedSign(turn, at, sign.tokens)
        return signs_now, young

    def _done(self, result: CommitResult) -> None:
        self._post(self._go_on)  # what was not committed is published with the next sign

    def _go_on(self) -> None:
        """Schedule the next look if a heartbeat may still change; else rest."""
        if self._young or any(sign.tokens for sign in self._told.values()):
            self._look_later()
            return
        self._rests = True
        if self._heard:  # since the look
            self._wake()
