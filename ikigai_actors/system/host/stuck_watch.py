"""The watch over agents of this host that have the setting ``stuck_after``: do they send heartbeats in a turn?

    unwatched   the agent is between turns, or waits for a person, for a budget or for other agents
    watched     the next check is set for the time at which the agent's latest heartbeat would be too old
    told        the supervisor got a mail, at most one for each turn; nothing else happens to the agent

Agents without the setting cost nothing.
"""

from collections.abc import Callable
from functools import partial

from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.records.hosts.liveness import ReportStuck
from ikigai_actors.store.journal import Journal
from ikigai_actors.system.host.processes import ProcessTable

WATCHED = (Phase.WAITING_FOR_MODEL, Phase.RUNNING_TOOLS, Phase.COMPACTING)
"""The phases of a turn in which an agent must send heartbeats."""


class StuckWatch:
    """Watches whether agents of one host send heartbeats in their turns. One thread uses it."""

    def __init__(
        self,
        processes: ProcessTable,
        journal: Journal,
        clock: Clock,
        after: Callable[[float, Callable[[], object]], object],
    ) -> None:
        """Make the watch of a host.

        Args:
            journal: commits the mails to supervisors.
            clock: gives the times of mails.
            after: lets the thread call a function in this many seconds.
        """
        self._processes, self._journal, self._clock, self._after = processes, journal, clock, after
        self._watched: set[str] = set()

    def begin(self, uuid: str) -> None:
        """Begin to watch an agent, unless it is watched already."""
        if uuid not in self._watched:
            self._watched.add(uuid)
            self._look(uuid)

    def _look(self, uuid: str) -> None:
        self._watched.discard(uuid)
        actor = self._processes.get(uuid)
        if actor is None:
            return
        state = actor.state
        limit = state.view.settings.get("stuck_after")
        if not limit or not state.turn or state.shown not in WATCHED:
            return  # it begins again when that changes
        silent = 0.0 if actor.tally.waits else actor.tally.sign().seconds
        if silent < limit:
            self._watched.add(uuid)
            self._after(limit - silent, partial(self._look, uuid))
            return
        text = (
            f"Agent {actor.origin.name or uuid} sends no heartbeat: {state.shown.value}, and nothing has come for "
            f"{silent:.0f} s. Nothing is done about it by itself: interrupt it, kill it, or wait on."
        )
        self._journal.ask(ReportStuck(uuid, state.turn, text, self._clock.now_ms()))
