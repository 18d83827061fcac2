"""The process that is killed: it resumes or not, then works on random agents with several hands.

Everything is reported over a pipe, one report at a time, and only after the library's call returned: what is reported
was acknowledged. `Trying` alone comes before a call, so that the last ones tell what a kill has cut off.
"""

import os
import random
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    AgentStopped,
    Message,
    ProviderError,
    Reply,
    Signal,
    TurnInterrupted,
)
from ikigai_actors.agent.subscriptions import Event, Streamed
from ikigai_actors.errors import AlreadyMerged, HeadMoved, MarkNotFound, NotBelow, NothingToMerge, NoTurn, TurnOpen
from ikigai_actors.records.messages.messages import Kind
from supervisors.orphans import OrphanPolicy
from tests.kit import outside
from tests.torture.script import World, continue_all, open_when_free

HANDS = 3
PATIENCE = 60.0
"""Seconds after which a call that has not returned is a defect."""


class Stage(NamedTuple):
    """Where the process is: ``boot``, ``resume``, ``work``."""

    name: str


class Heard(NamedTuple):
    """A subscriber was told of a message that is committed."""

    message: Message


class Delta(NamedTuple):
    """A piece of a reply that is being received."""

    agent: str


class Trying(NamedTuple):
    """A hand is about to give a command; its token stands in what the command writes."""

    hand: int
    command: str
    token: str


class Wrote(NamedTuple):
    """A command returned the position of what it wrote."""

    hand: int
    agent: str
    position: int
    kind: str
    token: str


class Forked(NamedTuple):
    """A fork returned."""

    hand: int
    parent: str
    child: str
    prompt: str | None


class Ended(NamedTuple):
    """A turn ended: ``assistant``, ``error`` or ``interrupted``. The prompt is None for one that was resumed."""

    hand: int
    agent: str
    prompt: str | None
    kind: str
    text: str


class Said(NamedTuple):
    """A word was kept for an agent, as this mail."""

    hand: int
    agent: str
    mail: int
    token: str


class Entered(NamedTuple):
    """A receipt came: a word stands at this position."""

    hand: int
    agent: str
    position: int
    token: str


class TookBack(NamedTuple):
    """A word was withdrawn."""

    hand: int
    agent: str
    mail: int
    token: str


class Reminded(NamedTuple):
    """An agent has a timer, which fires once."""

    hand: int
    agent: str
    text: str


class Joined(NamedTuple):
    """An agent has joined a group, and perhaps left it."""

    hand: int
    agent: str
    group: str
    stays: bool


class Died(NamedTuple):
    """A command that ends agents returned."""

    hand: int
    heads: tuple[tuple[str, int], ...]
    """Who, and how far its log goes."""
    reason: str


class Doomed(NamedTuple):
    """TERM was sent: the agent finishes its turn, and dies."""

    hand: int
    agent: str


class Bereft(NamedTuple):
    """A command found its agent dead."""

    hand: int
    agent: str


class Idle(NamedTuple):
    """A hand's command had nothing to do or was refused."""

    hand: int


class Complaint(NamedTuple):
    """Something is wrong already."""

    text: str


Report = (
    Stage | Heard | Delta | Trying | Wrote | Forked | Ended | Said | Entered | TookBack | Reminded | Joined | Died
    | Doomed | Bereft | Idle | Complaint
)  # fmt: skip


def live(url: str, world: Path, seed: str, resume: bool, pipe: Connection) -> None:
    """Work on a database for ever, and report; the entry point of the process."""
    lock = threading.Lock()

    def report(what: Report) -> None:
        with lock:
            pipe.send(what)

    def complain(text: str) -> None:
        report(Complaint(text))

    def hear(event: Event) -> None:
        match event:
            case Message():
                report(Heard(event))
            case Streamed():
                report(Delta(event.agent_uuid))

    def work(hand: int) -> None:
        try:
            _Hand(system, url, hand, random.Random(f"{seed} {hand}"), seed, report).work()
        except BaseException as error:
            complain(f"hand {hand} failed: {error!r}")
        os._exit(1)

    report(Stage("boot"))
    system = open_when_free(url, World(world), complain)
    system.subscribe(hear)
    continue_all(system)
    if resume:
        report(Stage("resume"))
        for agent in system.resume():
            report(outcome(0, agent, None, partial(agent.reply, PATIENCE)))
    report(Stage("work"))
    hands = [threading.Thread(target=work, args=(hand,)) for hand in range(HANDS)]
    for thread in hands:
        thread.start()
    for thread in hands:
        thread.join()


def outcome(hand: int, agent: AgentRef, prompt: str | None, wait: Callable[[], Reply]) -> Ended | Bereft:
    """How a turn ended, when it has."""
    try:
        return Ended(hand, agent.uuid, prompt, Kind.ASSISTANT, wait().text)
    except ProviderError as error:
        return Ended(hand, agent.uuid, prompt, Kind.ERROR, str(error))
    except TurnInterrupted:
        return Ended(hand, agent.uuid, prompt, Kind.INTERRUPTED, "")
    except AgentDead:
        return Bereft(hand, agent.uuid)


def name_of(token: str) -> str:
    """The name of the agent that a fork with this token makes."""
    return token.replace(" ", "-")


class _Hand:
    """Gives one command after the other to agents that it picks."""

    def __init__(
        self,
        system: ActorSystem,
        url: str,
        number: int,
        chance: random.Random,
        seed: str,
        report: Callable[[Report], None],
    ) -> None:
        self._system, self._number, self._chance, self._report = system, number, chance, report
        self._url = url
        self._seed = seed
        self._commands = 0

    def work(self) -> None:
        commands = {
            self._prompt: 12, self._steer: 8, self._fork: 5, self._mark: 2, self._rewind: 2, self._clear: 1,
            self._configure: 1, self._interrupt: 1, self._pause: 1, self._kill: 2, self._terminate: 1, self._exit: 1,
            self._undo: 2, self._merge: 3, self._remind: 3, self._join: 2,
        }  # fmt: skip
        while True:
            self._commands += 1
            records = self._system.agents("running") or [self._system.root.record]
            agent = self._system.handle(self._chance.choice(records).uuid)
            [command] = self._chance.choices(list(commands), list(commands.values()))
            token = f"{self._seed} {self._number} {self._commands}"
            self._report(Trying(self._number, command.__name__.strip("_"), token))
            try:
                self._report(command(agent, token))
            except AgentDead:
                self._report(Bereft(self._number, agent.uuid))
            except AgentStopped:
                self._report(Idle(self._number))

    def _prompt(self, agent: AgentRef, token: str) -> Report:
        return outcome(self._number, agent, token, lambda: agent.prompt(token).get(timeout=PATIENCE))

    def _steer(self, agent: AgentRef, token: str) -> Report:
        """At times the word is withdrawn, or its receipt awaited."""
        receipt = agent.steer(token, now=self._chance.random() < 0.3)
        said = Said(self._number, agent.uuid, receipt.kept.get(timeout=PATIENCE), token)
        what = self._chance.random()
        if what < 0.2 and receipt.withdraw():
            return TookBack(*said)
        self._report(said)
        if what < 0.6:
            return said
        return Entered(self._number, agent.uuid, receipt.get(timeout=PATIENCE).position, token)

    def _fork(self, agent: AgentRef, token: str) -> Report:
        prompt = token if self._chance.random() < 0.5 else None
        [policy] = self._chance.choices((None, *OrphanPolicy), (4, 1, 4, 1, 1))
        child = agent.fork(prompt, name=name_of(token), on_orphan=policy, timeout=PATIENCE)
        return Forked(self._number, agent.uuid, child.uuid, prompt)

    def _mark(self, agent: AgentRef, token: str) -> Report:
        return Wrote(self._number, agent.uuid, agent.mark(token, timeout=PATIENCE), Kind.MARK, token)

    def _rewind(self, agent: AgentRef, token: str) -> Report:
        try:
            return Wrote(self._number, agent.uuid, agent.rewind(timeout=PATIENCE), Kind.REWIND, "")
        except MarkNotFound:
            return Idle(self._number)

    def _clear(self, agent: AgentRef, token: str) -> Report:
        return Wrote(self._number, agent.uuid, agent.clear(timeout=PATIENCE), Kind.CLEAR, "")

    def _undo(self, agent: AgentRef, token: str) -> Report:
        try:
            return Wrote(self._number, agent.uuid, agent.undo(timeout=PATIENCE), Kind.REWIND, "")
        except NoTurn:
            return Idle(self._number)

    def _merge(self, agent: AgentRef, token: str) -> Report:
        """One of its children, if it has said something new and does nothing."""
        if not (children := agent.children()):
            return Idle(self._number)
        try:
            merged = agent.merge(self._chance.choice(children), timeout=PATIENCE)
        except (AlreadyMerged, HeadMoved, NothingToMerge, NotBelow, TurnOpen):
            return Idle(self._number)
        return Wrote(self._number, agent.uuid, merged.position, Kind.MERGE, "")

    def _remind(self, agent: AgentRef, token: str) -> Report:
        agent.remind(token, after=self._chance.uniform(0.01, 2), prompt=self._chance.random() < 0.5, timeout=PATIENCE)
        return Reminded(self._number, agent.uuid, token)

    def _join(self, agent: AgentRef, token: str) -> Report:
        group = name_of(token)
        agent.join(group, timeout=PATIENCE)
        if leaves := self._chance.random() < 0.3:
            agent.leave(group, timeout=PATIENCE)
        return Joined(self._number, agent.uuid, group, not leaves)

    def _configure(self, agent: AgentRef, token: str) -> Report:
        position = agent.configure(system=token, timeout=PATIENCE)
        return Wrote(self._number, agent.uuid, position, Kind.CONFIGURE, token)

    def _interrupt(self, agent: AgentRef, token: str) -> Report:
        agent.signal(Signal.INT, timeout=PATIENCE)
        return Idle(self._number)

    def _pause(self, agent: AgentRef, token: str) -> Report:
        """It goes on by itself: see `continue_all`."""
        agent.signal(Signal.STOP, timeout=PATIENCE)
        return Idle(self._number)

    def _kill(self, agent: AgentRef, token: str) -> Report:
        """At times as another process does."""
        if agent.parent is None:
            return Idle(self._number)
        cascade = self._chance.random() < 0.5
        if self._chance.random() < 0.3:
            outside.signal(self._url, agent.uuid, Signal.KILL, cascade=cascade, reason=token, grace=0)
            return self._died([agent], token)
        return self._died(agent.kill(cascade=cascade, reason=token, timeout=PATIENCE), token)

    def _terminate(self, agent: AgentRef, token: str) -> Report:
        if agent.parent is None:
            return Idle(self._number)
        cascade, grace = self._chance.random() < 0.5, self._chance.choice((0.01, 0.1, 2))
        agent.signal(Signal.TERM, PATIENCE, cascade=cascade, reason=token, grace=grace)
        return Doomed(self._number, agent.uuid)

    def _exit(self, agent: AgentRef, token: str) -> Report:
        if agent.parent is None:
            return Idle(self._number)
        agent.exit(token, timeout=PATIENCE)
        return self._died([agent], token)

    def _died(self, dead: list[AgentRef], reason: str) -> Died:
        heads = self._system._store.read(lambda tx: [tx.run("log_head", uuid=uuid.uuid)[0][0] for uuid in dead])
        return Died(self._number, tuple((uuid.uuid, head or 0) for uuid, head in zip(dead, heads, strict=True)), reason)
