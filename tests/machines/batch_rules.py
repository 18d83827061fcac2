"""The rules of a machine for requests that wait for a batch, and what must hold for them.

The laws, by the names with which their failures begin:

    paid        a request that waits for a batch is paid for once, whoever crashes, and whatever answer is lost
    withdrawn   a request whose turn an INT has ended before its batch was made is never sent
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ikigai_actors import AgentRef, Provider, Signal
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.providers.batches import BatchRequest, MemberOutcome
from ikigai_actors.store.base import Transaction
from ikigai_actors.testing import Broken
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.machine.model import at_work
from ikigai_actors.testing.scripted_batches import ScriptedBatches

BATCHED = "batched"
"""The name of the provider with batches."""


WAITS = "waiting for its batch"
"""The state of an agent whose request waits for a batch."""


class CountedBatches(ScriptedBatches):
    """A service with batches that counts what each request was sent and paid."""

    def __init__(self) -> None:
        super().__init__(lambda request: f"{request.agent} is answered")
        self.sent: Counter[str] = Counter()
        """How often each body was sent."""
        self.bought: Counter[str] = Counter()
        """How often each body was paid for."""

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        """Accept a batch, refuse it, or accept it without an answer. Raises `ProviderError`."""
        self.sent.update(request.body.decode() for request in requests)
        return await super().create_batch(id, requests)

    def _outcome(self, body: bytes) -> MemberOutcome:
        outcome = super()._outcome(body)
        if outcome.kind == "succeeded":
            self.bought[body.decode()] += 1
        return outcome


class BatchRules(Stage):
    """The part of a machine that has these rules."""

    def __init__(self) -> None:
        super().__init__()
        self.service = CountedBatches()
        self.patient: dict[str, None] = {}
        """The agents whose requests wait for batches."""
        self.withdrawn: set[str] = set()
        """The prompts whose requests were taken back before their batch was made."""

    def providers(self) -> Mapping[str, Provider]:
        return {**super().providers(), BATCHED: self.service}

    def serves(self) -> bool:
        """Whether nobody waits for a batch; then an answer may be long in coming."""
        waiting = (state.shown is Phase.WAITING_FOR_BATCH for state in at_work(self.system).values())
        return not any(waiting) and super().serves()

    @rule(who=AGENTS, lost=st.booleans(), outcome=st.sampled_from(("succeeded", "succeeded", "expired", "errored")))
    def wait_for_a_batch(self, who: int, lost: bool, outcome: str) -> None:
        """Fork an agent whose request waits for a batch. The service may lose its answer, or let the request expire."""
        if len(self.living()) >= self.LIMIT:
            return
        parent, said = self.agent(who), f"batch {self.fact()}"
        self.service.lost_orders = int(lost)
        self.service.outcomes = [outcome]

        def born(child: AgentRef) -> None:
            self.ledger.known.setdefault(child.uuid)
            self.patient[child.uuid] = None
            self.attempt(lambda: child.configure(model=BATCHED, urgency="24h", timeout=PATIENCE), lambda _: ask(child))

        def ask(child: AgentRef) -> None:
            self.attempt(lambda: child.prompt(said), self.ledger.open.append)

        self.attempt(lambda: parent.fork(timeout=PATIENCE), born)
        self.attempt(lambda: self.world.sleep(5))

    @rule(seconds=st.sampled_from((5, 70, 150, 700)))
    def batches_go_on(self, seconds: int) -> None:
        """Let time pass in which batches are made, sent and answered."""
        if self.patient:
            self.attempt(lambda: self.world.sleep(seconds))

    @rule(which=st.integers(0, 3))
    def interrupt_a_batch(self, which: int) -> None:
        """Interrupt an agent that waits for its batch."""
        if not self.patient:
            return
        agent = self.system.handle([*self.patient][which % len(self.patient)])
        prompts: list[str] = []

        def interrupt() -> None:
            if agent.state == WAITS and self.system._store.read(lambda tx: _unsealed(tx, agent.uuid)):
                prompts.append(agent.history()[-1].content)
            agent.signal(Signal.INT, timeout=PATIENCE)
            self.world.settle()
            if agent.state != WAITS:
                self.withdrawn.update(prompt for prompt in prompts if prompt.startswith("batch "))

        self.attempt(interrupt, lambda _: self.signalled())

    @invariant()
    def a_batch_is_paid_for_once(self) -> None:
        """Check the laws ``paid`` and ``withdrawn``."""
        if twice := [body for body, count in self.service.bought.items() if count > 1]:
            raise Broken(f"paid: a request was paid for again: {twice[0]}")
        sent = [json.loads(body)[1][-1]["content"][-1].get("text") for body in self.service.sent]
        if late := self.withdrawn.intersection(sent):
            raise Broken(f"withdrawn: requests were sent that nobody waits for: {', '.join(sorted(late))}")


def _unsealed(tx: Transaction, uuid: str) -> bool:
    return any(agent == uuid for agent, *_ in tx.run("unsealed_members", service=f"{BATCHED}:"))
