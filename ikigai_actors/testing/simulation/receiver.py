"""The receiver of events in a simulation.

The receiver outlives all processes, and remembers the deliveries that it got.

A delivery, and the answer to it, arrive when the agenda chooses. Random choices decide whether the receiver refuses a
delivery, and whether its answer is lost.
"""

import json
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ikigai_actors.records.outbox.retries import ReceiverAnswer
from ikigai_actors.system.host.deliveries import Outgoing, ReceiverLink
from ikigai_actors.testing.simulation.scheduler import Agenda, Entry


class SendingProcess(Protocol):
    """The part of a process that its link to the receiver uses."""

    agenda: Agenda

    @property
    def threads(self) -> object:
        """Return the threads of the process. Deliveries in flight end with them."""

    def misfortune(self, *faults: str) -> str:
        """Draw one of these faults, and return its name; empty for no fault."""


class TakenDelivery(NamedTuple):
    """A delivery that the receiver has accepted."""

    id: str
    kind: str
    agent: str
    position: int


class SimulatedReceiver:
    """All receivers outside as one object, with the deliveries that they have accepted, in order."""

    def __init__(self) -> None:
        self.receipts: list[TakenDelivery] = []

    def receive(self, outgoing: Outgoing) -> None:
        """Accept a delivery, and record it."""
        body = json.loads(outgoing.body)
        name, data = outgoing.headers["webhook-id"], body["data"]
        self.receipts.append(TakenDelivery(name, body["type"], data["agent"], data["position"]))


class SimulatedLink(ReceiverLink):
    """The connection by which a process sends deliveries to the simulated receiver."""

    def __init__(self, process: SendingProcess, receiver: SimulatedReceiver) -> None:
        self._process, self._receiver = process, receiver

    def send(self, outgoing: Outgoing, done: Callable[[ReceiverAnswer], object]) -> None:
        process = self._process

        def arrive() -> None:
            fault = process.misfortune("refusals", "unthanked")
            if fault != "refusals":
                self._receiver.receive(outgoing)
            answer = ReceiverAnswer(0, "the answer is lost") if fault == "unthanked" else ReceiverAnswer(204, "204")
            if fault == "refusals":
                answer = ReceiverAnswer(500, "500")
            process.agenda.add(Entry("the answer of the receiver arrives", lambda: done(answer), process.threads))

        process.agenda.add(Entry("a delivery arrives", arrive, process.threads))

    def close(self) -> None:
        """Do nothing. Deliveries in flight may arrive, but their answers are lost."""
