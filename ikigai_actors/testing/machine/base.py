"""The ground of the rules of `AgentTreeMachine`: the world, the acknowledgements in it, and the replies of models."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.errors import IkigaiError, StoreError, StoreUnavailable, SystemClosed
from ikigai_actors.providers.base import Provider, Reply, Request, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.system.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.machine.fixtures import WORK, OwnCode, Work
from ikigai_actors.testing.machine.model import Ledger, check_wait
from ikigai_actors.testing.simulation.process import Broken, ProcessCrashed
from ikigai_actors.testing.simulation.scheduler import Endless, Stuck
from ikigai_actors.testing.simulation.world import Simulation
from ikigai_actors.tools.function import Tool
from supervisors.signals import Signal

PATIENCE = 300.0
"""Seconds after which a blocking call is given up: it may wait for a stopped agent, or for ever."""


class Stage(RuleBasedStateMachine):
    """The part of `AgentTreeMachine` that has no rules."""

    world: Simulation
    """The world of the run, once it has begun."""

    commits: CommitCheck
    """Checks each commit of the world."""

    LIMIT = 12
    """The most agents that live at once: runs stay short."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Work()
        self.ledger = Ledger()
        self.answers: dict[str, deque[ScriptedReply]] = {}
        """What models answer next, by agent."""
        self.tokens = 0

    # What subclasses may replace

    def provider(self) -> Provider:
        """The default provider: a script of drawn replies, and ``ok`` when that is used up."""
        return OwnCode(self._answer)

    def providers(self) -> Mapping[str, Provider]:
        """Further providers."""
        return {}

    def tools(self) -> list[Tool]:
        """The tools that models may call."""
        return [self.work]

    def options(self) -> dict[str, Any]:
        """Further arguments of `ActorSystem.open`."""
        return {}

    # What rules call

    @property
    def system(self) -> ActorSystem:
        """The system that runs."""
        return self.world.system

    def agent(self, number: int) -> AgentRef:
        """The agent with a number; dead agents count too."""
        known = list(self.ledger.known)
        return self.system.handle(known[number % len(known)])

    def attempt(self, act: Callable[[], Any], then: Callable[[Any], None] = lambda answer: None) -> None:
        """Do something that may be refused or cut off by a crash; ``then`` gets an acknowledged result."""
        try:
            answer = act()
        except ProcessCrashed:
            self.ledger.open.clear()
            self.world.recover()
        except StoreUnavailable as outage:
            if not self.world.luck.spent("unreadable"):
                raise
            self.world.note("refused", str(outage))
        except (StoreError, SystemClosed, Stuck, Endless):
            raise
        except TimedOut as late:
            if not any(record.status == "stopped" for record in self.living()):
                raise Broken(f"quiescence: nobody is stopped, and {late}") from late
        except IkigaiError as refusal:
            self.world.note("refused", f"{type(refusal).__name__}: {refusal}")
        else:
            then(answer)

    def waits(self, waiter: AgentRef, agents: list[AgentRef] | None, seconds: int) -> None:
        """Have an agent wait for others, or for mail; check the reason why the wait ends."""
        clock = self.world.clock
        deadline, wrong = clock.now_ms() + seconds * 1000, clock.wrong

        def waited(answers: Mapping[AgentRef | str, WaitResult]) -> None:
            told = seconds and clock.wrong == wrong  # else the calendar says nothing about how long it was
            check_wait(self.system, waiter, agents, answers, deadline if told else None, clock.now_ms())

        self.attempt(lambda: waiter.wait(agents, timeout=seconds), waited)

    def send_signal(self, agent: AgentRef, signal: Signal, *, spread: bool = False) -> None:
        """Send a signal. Once it is acknowledged, a paused agent must get no further."""
        self.attempt(
            lambda: agent.signal(signal, timeout=PATIENCE, cascade=spread),
            lambda _: self.ledger.stopped(self.system, self.commits),
        )

    def send_mail(self, by: AgentRef, to: AgentRef, body: str) -> None:
        """An agent sends another one a mail."""
        self.attempt(
            lambda: by.send(to, body, timeout=PATIENCE),
            lambda number: self.ledger.was_sent(by.uuid, to.uuid, number, body),
        )

    def read_mail_of(self, agent: AgentRef) -> None:
        """An agent reads its mail."""
        self.attempt(lambda: agent.read_mail(timeout=PATIENCE), lambda mails: self.ledger.reads(agent.uuid, mails))

    def living(self) -> list[AgentRecord]:
        """The living agents."""
        return [record for record in self.system.agents() if record.living]

    def script(self, agent: AgentRef, *answers: ScriptedReply) -> None:
        """The next replies of an agent's model."""
        self.answers.setdefault(agent.uuid, deque()).extend(map(self._filled_in, answers))

    def _answer(self, request: Request) -> ScriptedReply:
        left = self.answers.get(request.agent)
        return left.popleft() if left else "ok"

    def _filled_in(self, reply: ScriptedReply) -> ScriptedReply:
        if not isinstance(reply, Reply):
            return reply
        calls = []
        for call in reply.tool_calls:
            self.tokens += 1
            added = {WORK: {"token": str(self.tokens)}, "send": {"to": self.system.root.uuid}}.get(call.name, {})
            calls.append(ToolCall(call.name, {**call.input, **added}))
        return Reply(reply.text, tuple(calls), reply.stop_reason)
