"""Sleep: agents that nobody has used for some time give up their actors, so that a host may run for months.

    few         the host has fewer actors than `CROWD`: no checks, and no agent goes to sleep
    looking     several checks within `sleep_after`: the watch asks the actors of agents that were idle for that long to
                end. An actor ends between two messages, and only if nothing of its agent is open
    asleep      the agent has no actor, only its row. The row's mark for the next boot is cleared later, with others

A crash before that leaves marks, and the next boot looks at these agents once more.
"""

from collections.abc import Callable

from ikigai_actors.records.agents.registry import MOST_PUT_TO_SLEEP, PutToSleep
from ikigai_actors.store.journal import Journal
from ikigai_actors.system.host.processes import CROWD, ProcessTable

SLEEP_AFTER = 600.0
"""The default number of seconds after which an unused agent goes to sleep."""

_LOOKS = 4
"""The number of checks within that time."""

_PAUSE = 1.0
"""Seconds between two commits that clear the marks of sleeping agents."""


class SleepWatch:
    """Lets agents of one host sleep that were not used for long. One thread uses it."""

    def __init__(
        self,
        processes: ProcessTable,
        journal: Journal,
        host: str,
        after: Callable[[float, Callable[[], object]], object],
        sleep_after: float | None,
    ) -> None:
        """Make the watch of a host.

        Args:
            journal: commits what clears marks.
            host: the id of the host.
            after: lets the thread call a function in this many seconds.
            sleep_after: seconds after which an agent sleeps that nobody has used; None for never.
        """
        self._processes, self._journal, self._host = processes, journal, host
        self._after, self._sleep_after = after, sleep_after
        self.looks = sleep_after is None
        """Whether it looks again by itself, or never does."""
        self._marked: list[str] = []
        self._clears = False

    def begin(self) -> None:
        """Begin to check the actors regularly, while the host has many of them."""
        if not self.looks and self._sleep_after is not None:
            self.looks = True
            self._after(self._sleep_after / _LOOKS, self._look)

    def _look(self) -> None:
        self.looks = False
        self._marked += self._processes.take_slept()
        if self._marked and not self._clears:
            self._clear_of_slept()
        unused = [actor for actor in self._processes if actor.looks_unused() >= _LOOKS]
        for actor in unused:
            actor.sleep()
        if unused or len(self._processes) >= CROWD:
            self.begin()

    def _clear_of_slept(self) -> None:
        some, self._marked = self._marked[:MOST_PUT_TO_SLEEP], self._marked[MOST_PUT_TO_SLEEP:]
        self._clears = bool(self._marked)
        if self._clears:
            self._after(_PAUSE, self._clear_of_slept)
        self._journal.perform(PutToSleep(self._host, some))

    def clear_marks(self) -> None:
        """Clear, in batches, the marks by which a boot looks at agents, for agents without open work."""
        if self._journal.perform(PutToSleep(self._host)) == MOST_PUT_TO_SLEEP:
            self._after(_PAUSE, self.clear_marks)
