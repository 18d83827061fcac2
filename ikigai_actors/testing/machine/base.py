"""What the rules of `AgentTreeMachine` stand on: the world, what was acknowledged in it, and what models answer."""

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
"""Seconds after which what was asked for waits for a stopped agent, or for ever."""


class Stage(RuleBasedStateMachine):
    """The part of `AgentTreeMachine` that has no rules."""

    world: Simulation
    """Where it takes place, once it has begun."""

    commits: CommitCheck
    """Looks at each commit of it."""

    LIMIT = 12
    """Agents that live at most: runs stay short."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Work()
        self.ledger = Ledger()
        self.answers: dict[str, deque[ScriptedReply]] = {}
        """What models answer next, by agent."""
        self.tokens = 0

    # What subclasses may replace

    def provider(self) -> Provider:
        """Who answers: a script of drawn replies, and ``ok`` when it is used up."""
        return OwnCode(self._answer)

    def providers(self) -> Mapping[str, Provider]:
        """Further providers."""
        return {}

    def tools(self) -> list[Tool]:
        """What models may call."""
        return [self.work]

    # What rules call

    @property
    def system(self) -> ActorSystem:
        """The system that runs."""
        return self.world.system

    def agent(self, number: int) -> AgentRef:
        """The agent of a number, the dead too."""
        known = list(self.ledger.known)
        return self.system.handle(known[number % len(known)])

    def attempt(self, act: Callable[[], Any], then: Callable[[Any], None] = lambda answer: None) -> None:
        """Do something that may be refused, and that a crash may cut off; ``then`` is told what was acknowledged."""
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
        """An agent waits for others, or for mail; what ends that must be true."""
        clock = self.world.clock
        deadline, wrong = clock.now_ms() + seconds * 1000, clock.wrong

        def waited(answers: Mapping[AgentRef | str, WaitResult]) -> None:
            told = seconds and clock.wrong == wrong  # else the calendar says nothing about how long it was
            check_wait(self.system, waiter, agents, answers, deadline if told else None, clock.now_ms())

        self.attempt(lambda: waiter.wait(agents, timeout=seconds), waited)

    def send_signal(self, agent: AgentRef, signal: Signal, *, spread: bool = False) -> None:
        """Somebody sends a signal; from its acknowledgement on, whoever is paused gets no further."""
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
        """Who lives."""
        return [record for record in self.system.agents() if record.living]

    def script(self, agent: AgentRef, *answers: ScriptedReply) -> None:
        """What an agent's model answers next."""
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
