"""The rules for traffic with the outside: signed deliveries in, events out."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.records.arrivals.endpoints import WAYS_IN
from ikigai_actors.system.secrets import referred_secret
from ikigai_actors.testing.machine.arrival_oracle import arriving_text
from ikigai_actors.testing.machine.base import AGENTS, Stage

DOOR_SECRET = "env:PATH"
"""The secret reference of endpoints in a run: a variable that every process has. Signatures are tested elsewhere."""

MOST_SUBSCRIBED = 2
"""The most subscriptions in a run."""


class StreetRules(Stage):
    """The rules of both machines about deliveries from outside and events for receivers."""

    @rule(who=AGENTS, below=st.booleans())
    def subscribe(self, who: int, below: bool) -> None:
        """Subscribe an outside receiver to the events of an agent, or of all agents."""
        if len(self.deliveries.subscriptions) >= MOST_SUBSCRIBED:
            return
        agent = self.agent(who)
        scope = None if below and agent.uuid == self.system.root.uuid else agent
        self.attempt(
            lambda: self.system.subscriptions.add("https://example.com/", [DOOR_SECRET], agent=scope, below=below)
        )

    @rule(who=AGENTS, way=st.sampled_from(WAYS_IN), number=st.integers(1, 3))
    def arrive(self, who: int, way: str, number: int) -> None:
        """Send a delivery to an endpoint, perhaps a repeated one; the answer to the sender may be lost."""
        if way == "fork" and len(self.living()) >= self.LIMIT:
            return
        agent, endpoints = self.agent(who), self.system.endpoints
        self.attempt(lambda: endpoints.add("door", agent, "bearer", [DOOR_SECRET], way=way, template="{text}"))
        headers = {"authorization": f"Bearer {referred_secret(DOOR_SECRET)}", "x-delivery": str(number)}
        body = f'{{"text": "{arriving_text(number)}"}}'.encode()
        self.attempt(
            lambda: self.system.endpoints.receive("door", headers, body),
            lambda received: self.arrivals.answered(number, received.status),
        )
