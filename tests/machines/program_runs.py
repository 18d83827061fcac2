"""Random programs, and runs of them in which hosts are killed, signals come and clocks jump at any moment.

A `Plan` is what a program does, as data. One function, `lead`, does what the plan in its prompt says. A `Run` opens a
world with one or two hosts, has an agent follow a plan, and does something to it after so many choices of the agenda.
The laws, which each run is judged by:

    once        an effect happens once for each key of a step, and at most once where a step may not be repeated
    answer      the answer is that of the run to which nothing was done; a step that was cut off may be unknown
    child       each child that the plan forks is there once
    prompt      each prompt stands in one history, once
    asked       each question is asked once
    time        a step gets the same time and the same random number in each replay: else it would be another act
    over        nothing of an interrupted turn runs on: no effect comes, and no message but those that end it
    wakes       what the program waits for comes, and it goes on: no run hangs, as the agenda would be empty
    parked      a program that only waits is parked in time: it has no actor then
    fsck        the database is sound after each commit, as in every simulation
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from ikigai_actors import AgentRef, Reply, Request, ScriptedProvider, Signal, Stream, TurnInterrupted, current_agent
from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import StepFailed
from ikigai_actors.programs import Program, first, gather, now, random, step
from ikigai_actors.testing import Broken, ProcessCrashed, Schedule, Simulation, simulated
from ikigai_actors.tools import current_call

PARK_AFTER, SLOW, NAP = 0.5, 1.0, 2.0
"""Seconds: a program is parked before its children answer, and in each nap."""

UNKNOWN = "?"
"""The value of a step of which nobody knows whether it was done."""


class Act(NamedTuple):
    """One act of a plan."""

    kind: str
    """``fork``, ``prompt``, ``wait`` for all prompts so far, ``first`` for one of them, ``nap`` for a time, ``ask`` a
    person, ``now`` for a step that gets the time; or ``once``, ``again``, ``by_key`` for a step.
    """
    text: str = ""
    child: int = 0
    """Which of the children so far is prompted."""


Plan = tuple[Act, ...]

KINDS = ("fork", "prompt", "prompt", "wait", "first", "nap", "ask", "now", "once", "again", "by_key", "by_key")
"""The kinds of acts that are drawn, some of them more often."""


def drawn_plan(chance: Random, acts: int) -> Plan:
    """A plan of so many acts, some of which are the same."""
    plan = [Act("fork", "kid-0")]
    children = 1
    while len(plan) < acts:
        match chance.choice(KINDS):
            case "fork":
                plan.append(Act("fork", f"kid-{children}"))
                children += 1
            case "prompt":
                plan.append(Act("prompt", chance.choice("ab"), chance.randrange(children)))
            case kind:
                plan.append(Act(kind, chance.choice("xy")))
    return (*plan, Act("wait"))


@dataclass
class Outside:
    """The world outside of the database: it outlives every process."""

    done: list[tuple[str, str]] = field(default_factory=list)
    """What steps have done: a key, and which kind of step it was."""
    known: set[str] = field(default_factory=set)
    """The keys that a service knows, which does nothing for a known one."""

    def act(self, kind: str, text: str) -> str:
        """What a step calls."""
        call = current_call()
        if kind != "by_key" or call.key not in self.known:
            self.done.append((call.key, kind))
        self.known.add(call.key)
        return text.upper()


OUTSIDE = Outside()


def act(kind: str, text: str) -> str:
    """The function of every step: what is outside now."""
    return OUTSIDE.act(kind, text)


def lead(task: str) -> str:
    """Follow the plan in the prompt."""
    me, plan = current_agent(), plan_in(task)
    kids: list[AgentRef] = []
    waiting: list[Future[Reply]] = []
    lines: list[str] = []
    for entry in plan:
        match entry.kind:
            case "fork":
                kids.append(me.fork(name=entry.text, model="script"))
            case "prompt":
                waiting.append(kids[entry.child].prompt(entry.text))
            case "wait":
                lines += [reply.text for reply in gather(*waiting)]
                waiting = []
            case "first" if waiting:
                first(*waiting)  # which one it is, is not the same in each run
            case "nap":
                me.sleep(NAP)
            case "ask":
                lines.append(str(me.ask(f"{entry.text}?", within="1m", default=True)))
            case "now":
                step(act, "again", f"{now()} {random()}", idempotent=True)
            case "first":
                pass
            case kind:
                how: Any = {"once": False, "again": True, "by_key": "by_key"}[kind]
                try:
                    lines.append(step(act, kind, entry.text, idempotent=how))
                except StepFailed:
                    lines.append(UNKNOWN)
    return " ".join(lines)


def task_of(plan: Plan) -> str:
    """A plan as the text of a prompt."""
    return " ".join(f"{act.kind}|{act.text}|{act.child}" for act in plan)


def plan_in(task: str) -> Plan:
    """The plan in the text of a prompt."""
    parts = (part.split("|") for part in task.split())
    return tuple(Act(kind, text, int(child)) for kind, text, child in parts)


class _Fresh:
    """Programs that are made anew in each process, as they would be by an import."""

    def __iter__(self) -> Iterator[Program]:
        return iter([Program(lead)])


def answered(request: Request) -> Stream:
    """The model of the children, which takes its time."""
    return Stream((f"heard-{request.messages[-1]['content'][-1]['text']}",), delay=SLOW)


class Blow(NamedTuple):
    """Something that is done to a run."""

    after: int
    """Choices of the agenda before it."""
    what: str
    """``kill``, ``stop`` and later on CONT, ``jump`` of the clock, ``int``, ``answer`` of a question, ``move``."""


BLOWS = ("kill", "kill", "stop", "jump", "int", "answer")


class Run:
    """A run of a plan, to which blows are done."""

    def __init__(self, plan: Plan, hosts: int = 1, schedule: int = 0, park_after: float | None = PARK_AFTER) -> None:
        self.plan, self._hosts, self._schedule, self._park_after = plan, hosts, schedule, park_after
        self.outside = Outside()
        self.choices = 0
        """How many choices the agenda had from the prompt to the answer."""

    def answer(self, blows: Sequence[Blow] = ()) -> str | None:
        """What the program answers; None when it was interrupted. Raises `Broken`."""
        with self._world() as world:
            boss = self._asked(world)
            begun = world.agenda.steps
            for blow in blows:
                if not self._goes_on(world, blow.after):
                    break
                if blow.what == "int":
                    self._interrupted(world, boss)
                    return None
                self._do(world, blow)
                boss = self._asked(world)
            answer = self._reply(world)
            self.choices = world.agenda.steps - begun
            self._judge(world)
            return answer

    def parked_for(self) -> int:
        """At how many choices the program was parked, in a run to which nothing is done. It has no actor then."""
        with self._world() as world:
            boss, count = self._asked(world), 0
            while self._goes_on(world, 1):
                count += boss.record.parked > 0 and boss.uuid not in {
                    process.origin.uuid for process in world.system._processes
                }
            return count

    @contextmanager
    def _world(self) -> Iterator[Simulation]:
        global OUTSIDE
        OUTSIDE = self.outside = Outside()
        schedule = Schedule.seeded(self._schedule) if self._schedule else Schedule({})
        with simulated(schedule, hosts=self._hosts, steps=1_000_000) as world:
            providers = {"script": ScriptedProvider(answered)}
            world.open(ScriptedProvider([]), providers, programs=_Fresh(), park_after=self._park_after)
            if self._hosts > 1:
                world.sleep(5)
            yield world

    def _asked(self, world: Simulation) -> AgentRef:
        """The agent that follows the plan, which is asked for it once, however often this is called."""
        while True:
            with suppress(ProcessCrashed):
                boss = world.system.root.fork(name="boss", model="lead", key="boss")
                self._future = boss.prompt(task_of(self.plan), key="plan")
                return boss
            world.recover()

    def _reply(self, world: Simulation) -> str:
        while True:
            with suppress(ProcessCrashed):
                return self._future.get(timeout=600).text
            world.recover()
            self._asked(world)

    def _goes_on(self, world: Simulation, choices: int) -> bool:
        """Let so much happen; return whether the answer has not come."""
        for _ in range(choices):
            if self._future.done() or not world.agenda.step():
                return not self._future.done()
        return not self._future.done()

    def _do(self, world: Simulation, blow: Blow) -> None:
        match blow.what:
            case "kill" if self._hosts == 1:
                world.crash()
                world.reopen(resume=True)
            case "kill":
                host = next(owner for owner in world.hosts if owner.host_id == world.system.agent("boss").record.owner)
                host.kill()
                world.sleep(30)
                host.start()
                world.sleep(5)
            case "stop":
                boss = world.system.agent("boss")
                boss.signal(Signal.STOP)
                world.sleep(1)
                before = len(self.outside.done)
                world.sleep(60)
                if len(self.outside.done) != before:
                    raise Broken("over: a step was done by an agent that is stopped")
                boss.signal(Signal.CONT)
            case "jump":
                world.clock.jump(-3600 if blow.after % 2 else 3600)
            case "answer":
                for question in world.system.questions.pending():
                    world.system.questions.answer(question.id, True)
            case "move":
                boss = world.system.agent("boss")
                other = next(host.name for host in world.hosts if host.host_id != boss.record.owner)
                boss.move(other)
                world.sleep(30)

    def _interrupted(self, world: Simulation, boss: AgentRef) -> None:
        """Interrupt the turn, and see that nothing of it runs on. Then another prompt is answered."""
        boss.signal(Signal.INT)
        world.sleep(1)
        done, head = list(self.outside.done), boss.record.turn
        written = [message.id for message in boss.history()]
        world.sleep(60)
        if head or self.outside.done != done or [message.id for message in boss.history()] != written:
            raise Broken("over: something of an interrupted turn has gone on")
        with suppress(TurnInterrupted):
            self._future.get(timeout=1)
        if boss.prompt("by_key|z|0").get(timeout=60).text != "Z":
            raise Broken("over: the next turn of an interrupted program is not answered")

    def _judge(self, world: Simulation) -> None:
        boss = world.system.agent("boss")
        for kind in ("once", "by_key"):
            keys = [key for key, how in self.outside.done if how == kind]
            if len(keys) > len(set(keys)):
                raise Broken(f"once: a step {kind} was done twice under one key")
        entries = [message.data for message in boss.history() if message.kind == "approval"]
        questions = sum("approved" not in data for data in entries)
        if questions != sum(act.kind == "ask" for act in self.plan):
            raise Broken(f"asked: {questions} questions were asked")
        wanted = [act.text for act in self.plan if act.kind == "fork"]
        kids = {child.name: child for child in boss.children()}
        if sorted(child.name or "" for child in boss.children()) != sorted(wanted):
            raise Broken(f"child: expected children {wanted}, got {sorted(map(str, kids))}")
        for number, name in enumerate(wanted):
            asked = [act.text for act in self.plan if act.kind == "prompt" and act.child == number]
            prompts = [message.content for message in kids[name].history() if message.kind == "user"]
            if sorted(prompts) != sorted(asked):
                raise Broken(f"prompt: {name} was asked {prompts}, and should have been asked {asked}")


def judged(plan: Plan, plain: str | None, blows: Sequence[Blow], hosts: int = 1, schedule: int = 0) -> None:
    """Judge a run with blows; ``plain`` is the answer of one without. Raises `Broken`."""
    answer = Run(plan, hosts, schedule).answer(blows)
    if answer is None:
        return
    steps = zip(answer.split(), (plain or "").split(), strict=True)
    if any(earlier not in (other, UNKNOWN) for earlier, other in steps):
        raise Broken(f"answer: expected {plain}, got {answer}")


def drawn_blows(chance: Random, choices: int, most: int, kinds: Sequence[str] = BLOWS) -> list[Blow]:
    """Up to so many blows within a run that has so many choices without them."""
    return [Blow(chance.randrange(choices), chance.choice(kinds)) for _ in range(1 + chance.randrange(most))]
