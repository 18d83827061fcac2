"""The receiver of events in a simulation: it outlives all processes, and remembers what it got.

A delivery, and the answer to it, arrive when the agenda chooses. Chance decides whether the receiver refuses it, or has
it and its answer is lost.
"""

import json
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ikigai_actors.records.outbox.retries import ReceiverAnswer
from ikigai_actors.system.host.deliveries import Outgoing, ReceiverLink
from ikigai_actors.testing.simulation.scheduler import Agenda, Entry


class SendingProcess(Protocol):
    """The process that sends, as far as a link needs it."""

    agenda: Agenda

    @property
    def threads(self) -> object:
        """The threads of the process: what is on its way ends with them."""

    def misfortune(self, *faults: str) -> str:
        """Draw one of these faults, or nothing."""


class TakenDelivery(NamedTuple):
    """A delivery that the receiver has taken."""

    id: str
    kind: str
    agent: str
    position: int


class SimulatedReceiver:
    """All receivers outside, as one: it has what each got, in order."""

    def __init__(self) -> None:
        self.receipts: list[TakenDelivery] = []

    def receive(self, outgoing: Outgoing) -> None:
        """Take a delivery."""
        body = json.loads(outgoing.body)
        name, data = outgoing.headers["webhook-id"], body["data"]
        self.receipts.append(TakenDelivery(name, body["type"], data["agent"], data["position"]))


class SimulatedLink(ReceiverLink):
    """The way by which a process sends."""

    def __init__(self, process: SendingProcess, receiver: SimulatedReceiver) -> None:
        """Send from a process to the receiver of its world."""
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
        """Do nothing: what is on its way may arrive, and nobody hears of the answer."""
