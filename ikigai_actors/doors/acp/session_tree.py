"""Which session the traffic of an agent goes to. Pure.

    tree.route("b")             # the session, and what is announced before

A session is an agent. A client that knows subagents is shown each agent in a session of its own, which is announced on
that of its supervisor before anything else bears its id. For any other client the traffic of an agent goes to the
nearest session above it that is open, since it takes an id that it does not know for an error.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple


class Announcement(NamedTuple):
    """A child session that its parent's session has to name."""

    parent: str
    child: str


class Route(NamedTuple):
    """Where the traffic of an agent goes."""

    session: str
    first: tuple[Announcement, ...] = ()
    """The sessions that are announced before."""


class SessionTree:
    """Which sessions a client knows."""

    def __init__(self, supervisor: Callable[[str], str | None], *, subagents: bool = False) -> None:
        """Begin with none; ``supervisor`` gives the uuid of an agent's supervisor."""
        self._supervisor, self.subagents = supervisor, subagents
        self.open: set[str] = set()
        """The sessions that the client has opened."""
        self.announced: dict[str, str] = {}
        """The sessions that were announced, each with the session that named it."""

    def route(self, agent: str) -> Route | None:
        """Where the traffic of an agent goes; None when no session above it is open."""
        line, known = [agent], {*self.open, *self.announced}
        while line[-1] not in known:
            if (above := self._supervisor(line[-1])) is None or above in line:
                return None
            line.append(above)
        if not self.subagents:
            return Route(line[-1])
        pairs = [Announcement(above, below) for below, above in pairwise(line)]
        return Route(agent, tuple(reversed(pairs)))

    def announce(self, route: Route) -> None:
        """Note that what a route names was announced."""
        self.announced.update((one.child, one.parent) for one in route.first)

    def forget(self, session: str) -> None:
        """A session is closed: what was announced below it is announced again when it is opened again."""
        self.open.discard(session)
        gone = {session}
        while found := {child for child, parent in self.announced.items() if parent in gone} - gone:
            gone |= found
        for child in gone & self.announced.keys():
            del self.announced[child]
