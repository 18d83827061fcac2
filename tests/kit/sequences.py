"""Sequences of exits, starts and times, played by our supervisor and by OTP's, each as a list of events.

An event is ``start a``, ``fail a``, ``stop b`` or ``gave up``. A start is the one of a restart or of a new child.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple, Protocol

from supervisors import supervisor as ours
from supervisors.causes import Cause
from supervisors.children import RestartType, SupervisedChild
from supervisors.strategies import Strategy
from supervisors.supervisor import Decided, Supervisor
from tests.kit.otp_oracle import OtpSupervisor


class Op(NamedTuple):
    """Something happens. One that is impossible is left out: a child that does not run cannot crash."""

    what: str
    """``crash``, ``normal``, ``kill``, ``fork`` (a new child) or ``retry`` (the oldest failed restart)."""
    child: str = ""
    restart: str = ""
    """The restart type of a new child."""
    wait: int = 0
    """Seconds that pass before it."""


@dataclass(frozen=True)
class Scenario:
    """A supervisor, and what happens to its children."""

    strategy: str
    intensity: int
    period: int
    """Seconds."""
    children: tuple[tuple[str, str], ...]
    """Names and restart types, in order."""
    ops: tuple[Op, ...]
    failing: frozenset[int]
    """Which starts fail, counted from 1; those of new children are not counted."""
    at_once: bool = False
    """Failed restarts are tried again right after the op that caused them, as OTP does."""


NAMES = "abcdefg"
TYPES = [restart.value for restart in RestartType]
CHANCES = {"crash": 8, "normal": 3, "kill": 2, "fork": 2, "retry": 6}


def random_scenario(random: Random, *, at_once: bool) -> Scenario:
    """A scenario of a few children and ops.

    Args:
        random: makes the choices.
        at_once: see `Scenario`.
    """
    names = NAMES[: random.randint(1, 5)]
    kinds = random.choices(list(CHANCES), list(CHANCES.values()), k=random.randint(2, 14))
    return Scenario(
        random.choice([strategy.value for strategy in Strategy]),
        random.randint(0, 5),
        random.randint(1, 3),
        tuple((name, random.choice(TYPES)) for name in names),
        tuple(Op(kind, random.choice(NAMES), random.choice(TYPES), random.choice((0, 0, 1, 2))) for kind in kinds),
        frozenset(start for start in range(1, 13) if random.random() < 0.25),
        at_once,
    )


class Subject(Protocol):
    """A supervisor that plays scenarios."""

    events: list[str]

    def alive(self) -> bool: ...
    def running(self) -> list[str]: ...
    def lost(self) -> list[str]:
        """The children that should run and do not, those to be tried again first."""

    def retries(self) -> bool:
        """Whether a failed restart waits to be tried again."""

    def perform(self, op: Op, now: int) -> None: ...


def play(subject: Subject, scenario: Scenario) -> list[str]:
    """The events of a scenario; after each op, who runs and who does not."""
    now = 0
    for op in scenario.ops:
        now += op.wait
        if not subject.alive():
            break
        if op.what == "retry":
            possible = subject.retries()
        elif op.what == "fork":
            possible = op.child not in subject.running() + subject.lost()
        else:
            possible = op.child in subject.running()
        if not possible:
            continue
        subject.perform(op, now)
        while scenario.at_once and subject.alive() and subject.retries():
            subject.perform(Op("retry"), now)
        if subject.alive():
            subject.events.append(f"up {' '.join(subject.running())}, down {' '.join(subject.lost())}")
    return subject.events


class Attempts:
    """Tells which starts fail."""

    def __init__(self, failing: Iterable[int]) -> None:
        self._failing = frozenset(failing)
        self._count = 0

    def __call__(self) -> bool:
        self._count += 1
        return self._count not in self._failing


class Ours:
    """Our supervisor, its decisions carried out to the letter."""

    def __init__(self, scenario: Scenario) -> None:
        self.events: list[str] = []
        self._starts = Attempts(scenario.failing)
        self._given_up = False
        self._timers: deque[str] = deque()
        self._down: set[str] = set()
        """Children whose start has failed, and those behind them: OTP starts them with the retry."""
        self._retrying: set[str] = set()
        self._supervisor = Supervisor(
            tuple(SupervisedChild(name, RestartType(restart)) for name, restart in scenario.children),
            Strategy(scenario.strategy),
            scenario.intensity,
            scenario.period * 1000,
        )

    def alive(self) -> bool:
        return not self._given_up

    def running(self) -> list[str]:
        return [child.agent for child in self._supervisor.children if child.agent not in self._down]

    def lost(self) -> list[str]:
        down = [child.agent for child in self._supervisor.children if child.agent in self._down]
        return sorted(down, key=lambda name: name not in self._retrying)

    def retries(self) -> bool:
        return bool(self._timers)

    def perform(self, op: Op, now: int) -> None:
        before = self._supervisor
        match op.what:
            case "fork":
                self.events.append(f"start {op.child}")
                child = SupervisedChild(op.child, RestartType(op.restart))
                self._supervisor = replace(before, children=(*before.children, child))
            case "retry":
                agent = self._timers.popleft()
                if agent in self._retrying:
                    self._carry_out(ours.exited(before, agent, Cause.CRASHED, now * 1000))
            case "kill":
                self.events.append(f"stop {op.child}")
                self._carry_out(ours.exited(before, op.child, Cause.KILLED, now * 1000), ended=op.child)
            case end:
                reason = Cause.CRASHED if end == "crash" else Cause.EXITED
                self._carry_out(ours.exited(before, op.child, reason, now * 1000), ended=op.child)

    def _carry_out(self, decided: Decided, ended: str = "") -> None:
        up = set(self.running()) - {ended}
        self._supervisor, decisions = decided
        for decision in decisions:
            match decision:
                case ours.Start(agents):
                    self._start(agents)
                case ours.Stop(agent) | ours.Bury(agent):
                    if agent in up:
                        self.events.append(f"stop {agent}")
                case ours.Retry(agent):
                    self._timers.append(agent)
                case ours.GiveUp(agents):
                    self.events += [f"stop {agent}" for agent in agents if agent in up]
                    self.events.append("gave up")
                    self._given_up = True

    def _start(self, agents: tuple[str, ...]) -> None:
        self._down.update(agents)
        self._retrying.difference_update(agents)
        for agent in agents:
            well = self._starts()
            self.events.append(f"{'start' if well else 'fail'} {agent}")
            if not well:
                self._retrying.add(agent)
                self._carry_out(ours.unstarted(self._supervisor, agent))
                return
            self._down.discard(agent)


class Otps:
    """The oracle, with an operator who deletes the specification of a child that is not to come back, as we bury it."""

    def __init__(self, scenario: Scenario) -> None:
        self.events: list[str] = []
        self._otp = OtpSupervisor(
            scenario.strategy,
            scenario.intensity,
            scenario.period,
            list(scenario.children),
            Attempts(scenario.failing),
            self.events.append,
        )

    def alive(self) -> bool:
        return self._otp.alive

    def running(self) -> list[str]:
        return [child.name for child in self._otp.children if child.pid == "pid"]

    def lost(self) -> list[str]:
        down = [child for child in self._otp.children if child.pid != "pid"]
        return [child.name for child in sorted(down, key=lambda child: child.pid != "restarting")]

    def retries(self) -> bool:
        return bool(self._otp.casts)

    def perform(self, op: Op, now: int) -> None:
        match op.what:
            case "fork":
                self._otp.start_child(op.child, op.restart)
            case "retry":
                self._otp.try_again(now)
            case "kill":
                self._otp.terminate_child(op.child)
                self._otp.delete_child(op.child)
            case end:
                transient = any(child.name == op.child and child.restart == "transient" for child in self._otp.children)
                self._otp.exit(op.child, end, now)
                if transient and end == "normal":
                    self._otp.delete_child(op.child)
