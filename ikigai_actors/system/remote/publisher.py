"""A publisher for events that may come from two sources: an agent's actor here, and the rows of its log.

An agent may live here now, and on another host before and after. Its actor publishes what it commits; the loop that
follows the database (`ikigai_actors.system.remote.following`) publishes what it reads, which may be the same. Each
message, death, name and status is published once, by the first of the two. An event passes if:

    message     its id is above that of the agent's latest message published here
    death       no death of the agent was published here
    name        it differs from the agent's latest name published here
    status      it differs from the agent's latest status published here, which is ``running`` at first

Messages of one agent come in order: before a host lets an agent act it has the loop publish what the former host has
committed (`FollowingLoop.catch_up`). Without subscribers nothing is remembered about agents.
"""

from typing import TYPE_CHECKING

from ikigai_actors.agent.subscriptions import Event, Publisher
from ikigai_actors.records.agents.registry import Died, Renamed, StatusSet
from ikigai_actors.records.messages.messages import Message

if TYPE_CHECKING:
    from ikigai_actors.actors.threads import Threads


class SharedPublisher(Publisher):
    """A publisher that publishes each event of an agent once, even if its actor and its rows both report the event."""

    def __init__(self, threads: "Threads") -> None:
        super().__init__(threads)
        self._gate = threads.lock()
        self._places: dict[str, int] = {}
        self._dead: set[str] = set()
        self._names: dict[str, str | None] = {}
        self._statuses: dict[str, str] = {}

    def place(self, agent: str) -> int:
        """Return the id of an agent's latest message that was published; 0 for none."""
        return self._places.get(agent, 0)

    def publish(self, event: Event) -> None:
        if not self.is_heard:
            if isinstance(event, StatusSet):
                self._statuses.pop(event.agent_uuid, None)
            super().publish(event)
            return
        with self._gate:
            if self._passes(event):
                super().publish(event)

    def _passes(self, event: Event) -> bool:
        match event:
            case Message(agent_uuid=uuid, id=number):
                passes = number > self._places.get(uuid, 0)
                if passes:
                    self._places[uuid] = number
            case Died(agent_uuid=uuid):
                passes = uuid not in self._dead
                self._dead.add(uuid)
            case Renamed(agent_uuid=uuid, name=name):
                passes = self._names.get(uuid, "") != name  # no name is empty
                self._names[uuid] = name
            case StatusSet(agent_uuid=uuid, status=status):
                passes = self._statuses.get(uuid, "running") != status
                self._statuses[uuid] = status
            case _:
                return True
        return passes
