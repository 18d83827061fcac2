"""Decides to which session the messages of an agent are sent. Pure.

    tree.route("b")             # the session, and what is announced before

A session is an agent. A client that knows subagents is shown each agent in a session of its own, which is announced in
the session of its supervisor before any message uses its id. For any other client the messages of an agent go to the
nearest open session above the agent, because such a client treats an unknown id as an error.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple


class Announcement(NamedTuple):
    """A child session that must be announced in the session of its parent."""

    parent: str
    child: str


class Route(NamedTuple):
    """The session to which an agent's messages are sent, and the sessions to announce before."""

    session: str
    first: tuple[Announcement, ...] = ()
    """The sessions that must be announced to the client first."""


class SessionTree:
    """The sessions that a client knows: those that it has opened, and those that were announced."""

    def __init__(self, supervisor: Callable[[str], str | None], *, subagents: bool = False) -> None:
        """Begin without sessions; ``supervisor`` returns the uuid of an agent's supervisor."""
        self._supervisor, self.subagents = supervisor, subagents
        self.open: set[str] = set()
        """The sessions that the client has opened."""
        self.announced: dict[str, str] = {}
        """The sessions that were announced, each with the session that named it."""

    def route(self, agent: str) -> Route | None:
        """Return the session for an agent's messages; None when no session above the agent is open."""
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
        """Record that the sessions of a route were announced."""
        self.announced.update((link.child, link.parent) for link in route.first)

    def forget(self, session: str) -> None:
        """Close a session. The sessions below it are announced again when it is opened again."""
        self.open.discard(session)
        gone = {session}
        while children := {child for child, parent in self.announced.items() if parent in gone} - gone:
            gone |= children
        for child in gone & self.announced.keys():
            del self.announced[child]
