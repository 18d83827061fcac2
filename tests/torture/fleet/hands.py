"""Hands: they do all that agents can be asked for from an attached process, and wait for the answers.

prompt     an agent answers, perhaps after calls of tools that must not run twice
fork       an agent gets a child
steer      an agent that nobody prompts gets a word, and its receipt is awaited
send       an agent sends another one a mail
publish    a document gets a version; several hands write the same ones
look       all versions of a document are read, or all mail of an agent, while others write
fell       a tree grows, part of it on another host, and is killed as a whole, while others work and fork in it
undo       an agent answers, and takes its latest prompt back
remind     an agent gets a timer, which is taken back, perhaps too late
gather     agents join a group, get a mail together, and one of them leaves
merge      an agent takes in the answer of a new child
pay        two agents ask at once under one strict budget, which is raised whenever it is used up
"""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from ikigai_actors import ActorSystem, AgentDead, AgentRef, Budget, Future, IkigaiError, Reply
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.errors import NoHost, NoTurn, StoreUnavailable, TimerNotFound
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.system.attached import AttachedSystem
from tests.foreign.histories import Operation
from tests.kit.databases import sql
from tests.torture.fleet.facts import Addressed, Asked, Fact, Granted, Grouped, Published, Reminded, Sent, TookIn
from tests.torture.fleet.hosts import PATIENCE, payment, task
from tests.torture.victim import Bereft, Died, Entered, Forked, Said, Wrote

DEEDS = {
    "prompt": 60, "use": 15, "send": 15, "publish": 10, "look": 10, "fork": 4, "fell": 5, "steer": 15,
    "undo": 8, "remind": 8, "gather": 4, "merge": 5, "pay": 4,
}  # fmt: skip
"""How often each is done."""

DOCUMENTS = 5

BRANCHES = 3
"""Agents of a tree below its top."""

LISTENERS = 2
"""Agents that get words alone."""

MEMBERS = 3
"""Agents that join a group."""

ALLOWANCE = 3_000
"""Tokens of a strict budget, and of each grant: enough for one request at a time."""

SLOW = 3.0
"""Seconds after which an answer probably waits for its budget."""

POLL = 0.2
"""Seconds between two tries to reach a server that restarts."""

ENOUGH = 1_000_000
"""Tokens of the grant after which nobody waits."""

IN_TREES = 0.2
"""How often an agent is chosen that is about to be killed."""


@dataclass
class Work:
    """What several hands do together."""

    system: ActorSystem | AttachedSystem
    seed: str
    facts: list[Fact] = field(default_factory=list)
    """All that was acknowledged."""
    history: list[Operation] = field(default_factory=list)
    """Each mail and version that was written, and each look, as `tests.foreign.histories` has them."""
    complaints: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds that each answer took."""
    counts: Counter[str] = field(default_factory=Counter)
    """What was done, and how often no host ran."""
    agents: list[AgentRef] = field(default_factory=list)
    """Those that live for ever."""
    listeners: list[AgentRef] = field(default_factory=list)
    """Those that get words alone."""
    trees: dict[str, list[AgentRef]] = field(default_factory=dict)
    """Those that are about to be killed, by the uuid of the top of their tree."""
    spells: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def populate(self, agents: int) -> None:
        """Have so many agents to begin with. All hosts may end at once: then this waits for the next."""
        until, numbers = time.monotonic() + PATIENCE, count()
        while len(self.agents) < agents or len(self.listeners) < LISTENERS:
            some = self.agents if len(self.agents) < agents else self.listeners
            try:
                some.append(self.fork(0, self.system.root, f"{self.seed}.agent.{next(numbers)}"))
            except (NoHost, StoreUnavailable):
                assert time.monotonic() < until, "no host runs"
                self._over.wait(0.1)

    @contextlib.contextmanager
    def under_way(self, hands: int) -> Iterator[None]:
        """Let so many hands work for the length of a block, and until each has its last answer."""
        self._over.clear()
        threads = [threading.Thread(target=Hand(self, number).work) for number in range(hands)]
        self.spells += 1
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def fork(self, hand: int, parent: AgentRef, token: str) -> AgentRef:
        """Give an agent a child with a name of its own."""
        child = parent.fork(name=token.replace(".", "-"), timeout=PATIENCE)
        self.facts.append(Forked(hand, parent.uuid, child.uuid, None))
        return child

    def pause(self, seconds: float = 0.2) -> None:
        """Wait, unless the hands are told to end."""
        self._over.wait(seconds)

    @property
    def is_over(self) -> bool:
        """Whether the hands are told to end."""
        return self._over.is_set()


class Hand:
    """Does one thing after the other."""

    def __init__(self, work: Work, number: int) -> None:
        """Make one of several hands of a spell of work."""
        self._work, self._number = work, number
        self._seed = f"{work.seed}.{work.spells}.{number}"
        self._chance = random.Random(self._seed)
        self._deeds = {
            "prompt": self._prompt, "use": self._use, "send": self._send,
            "publish": self._publish, "look": self._look, "fork": self._fork, "fell": self._fell,
            "steer": self._steer, "undo": self._undo, "remind": self._remind, "gather": self._gather,
            "merge": self._merge, "pay": self._pay,
        }  # fmt: skip

    def tokens(self) -> Iterator[str]:
        """A text for each thing that is done, which no other hand, spell or part of a campaign has."""
        return (f"{self._seed}.{number}" for number in count())

    def work(self) -> None:
        """Work until it is over."""
        for token in self.tokens():
            if self._work.is_over:
                return
            [deed] = self._chance.choices([*DEEDS], [*DEEDS.values()])
            self.do(deed, token)

    def do(self, deed: str, token: str) -> None:
        """Do one thing."""
        family = self._choose_family()
        agent = self._chance.choice(family)
        try:
            self._deeds[deed](agent, token)
            self._work.counts[deed] += 1
        except StoreUnavailable:  # the server restarts: nothing was acknowledged
            self._work.pause()
        except NoHost as error:  # whoever ends is started again, long before nobody is expected to go on
            self._work.counts["no host"] += 1
            self._complain(token, error)
            self._work.pause()
        except AgentDead as error:
            if family is self._work.agents:
                self._complain(token, error)
            self._work.facts.append(Bereft(self._number, agent.uuid))
        except IkigaiError as error:
            self._complain(token, error)

    def _complain(self, token: str, error: IkigaiError) -> None:
        self._work.complaints.append(f"{token}: {type(error).__name__}: {error}")

    def _choose_family(self) -> list[AgentRef]:
        """Those that live for ever, or a tree that is about to be killed."""
        if (trees := [*self._work.trees.values()]) and self._chance.random() < IN_TREES:
            return self._chance.choice(trees)
        return self._work.agents

    def _prompt(self, agent: AgentRef, token: str) -> None:
        self._ask(agent, token)

    def _use(self, agent: AgentRef, token: str) -> None:
        self._ask(agent, task(token))

    def _ask(self, agent: AgentRef, text: str) -> None:
        began = time.monotonic()
        waiting = self._begin_to_ask(agent, text)
        try:
            got = waiting.get(timeout=PATIENCE).text
        except (NoHost, AgentDead):  # a complaint, or nobody needs to answer
            raise
        except IkigaiError as error:
            got = f"{type(error).__name__}: {error}"
        if got != f"answer to {text}":
            self._work.complaints.append(f"{text} was answered with {got!r}")
        self._work.waits.append(time.monotonic() - began)

    def _begin_to_ask(self, agent: AgentRef, text: str) -> Future[Reply]:
        waiting = agent.prompt(text)
        if waiting.done():  # by its answer, or since its row could not be committed: then nothing was acknowledged
            waiting.get()
        self._work.facts.append(Asked(agent.uuid, text))
        return waiting

    def _steer(self, _: AgentRef, token: str) -> None:
        """Several hands steer one agent: some words open its turn, others come in the middle of it."""
        agent = self._chance.choice(self._work.listeners)
        receipt = agent.steer(token, now=self._chance.random() < 0.3)
        mail = receipt.kept.get(timeout=PATIENCE)
        self._work.facts.append(Said(self._number, agent.uuid, mail, token))
        position = receipt.get(timeout=PATIENCE).position
        self._work.facts.append(Entered(self._number, agent.uuid, position, token))

    def _send(self, agent: AgentRef, token: str) -> None:
        recipient = self._chance.choice(self._work.agents)
        with self._noted(token, ("append", f"mail {recipient.uuid}", token)):
            number = agent.send(recipient, token, timeout=PATIENCE)
        self._work.facts.append(Sent(agent.uuid, recipient.uuid, number, token))

    def _publish(self, agent: AgentRef, token: str) -> None:
        path = self._choose_document()
        with self._noted(token, ("append", path, token)):
            version = self._work.system.documents.write(path, token, author=agent, timeout=PATIENCE)
        self._work.facts.append(Published(path, version, token))

    def _choose_document(self) -> str:
        return f"notes/{self._work.seed}/{self._chance.randrange(DOCUMENTS)}"

    def _look(self, agent: AgentRef, token: str) -> None:
        recipient, path = self._chance.choice(self._work.agents).uuid, self._choose_document()
        looks = {
            f"mail {recipient}": f"SELECT body FROM mail WHERE recipient = '{recipient}' AND kind = 'mail' ORDER BY id",
            path: f"SELECT body FROM documents WHERE path = '{path}' ORDER BY version",
        }
        key = self._chance.choice([*looks])
        bodies: list[str] = []
        with self._noted(token, ("read", key, bodies)):
            bodies += [row[0] for row in self._work.system._store.read(lambda tx: sql(tx, looks[key]))]

    @contextlib.contextmanager
    def _noted(self, token: str, *operations: tuple[str, str, object]) -> Iterator[None]:
        """Note when something was asked and answered. What fails may have happened all the same."""
        begin, end = time.monotonic(), None
        try:
            yield
            end = time.monotonic()
        finally:
            how = "info" if end is None else "ok"
            process = f"{self._seed} {token}" if end is None else self._seed
            self._work.history.append({"process": process, "begin": begin, "end": end, "how": how, "ops": operations})

    def _fork(self, agent: AgentRef, token: str) -> None:
        [family] = [tree for tree in [*self._work.trees.values()] if agent in tree] or [self._work.agents]
        family.append(self._work.fork(self._number, agent, token))

    def _fell(self, agent: AgentRef, token: str) -> None:
        """Kill a tree that it has grown, while the other hands prompt and fork in it."""
        top = self._work.fork(self._number, self._chance.choice(self._work.agents), token)
        tree = self._work.trees[top.uuid] = [top]
        for number in range(BRANCHES):
            tree.append(self._work.fork(self._number, self._chance.choice(tree), f"{token}.{number}"))
        self._move(self._chance.choice(tree))
        self._work.pause(self._chance.uniform(0, 0.5))
        self._kill(top, token)
        del self._work.trees[top.uuid]

    def _kill(self, top: AgentRef, token: str) -> None:
        doubtful = False
        while True:
            try:
                dead = top.kill(cascade=True, reason=token, timeout=PATIENCE)
            except StoreUnavailable:
                doubtful = True
                self._work.pause()
            except AgentDead:
                if not doubtful:
                    raise
                self._work.facts.append(Bereft(self._number, top.uuid))
                return
            else:
                self._work.facts.append(Died(self._number, self._heads(dead), token))
                return

    def _move(self, agent: AgentRef) -> None:
        """Have another host run it, if one does."""
        try:
            names = [host.name for host in self._work.system.hosts() if host.name and host.state == "runs"]
            if names:
                agent.move(self._chance.choice(names), PATIENCE)
        except (NoHost, StoreUnavailable):
            return
        self._work.counts["move"] += 1

    def _undo(self, agent: AgentRef, token: str) -> None:
        self._ask(agent, token)
        with contextlib.suppress(NoTurn):
            position = agent.undo(timeout=PATIENCE)
            self._work.facts.append(Wrote(self._number, agent.uuid, position, Kind.REWIND, ""))

    def _remind(self, agent: AgentRef, token: str) -> None:
        after = self._chance.choice((0.05, 1.0, 3.0))
        if self._chance.random() < 0.3:
            agent.remind(token, after=after, prompt=True, timeout=PATIENCE)
            self._work.facts.append(Asked(agent.uuid, token))
            return
        number = agent.remind(token, after=after, timeout=PATIENCE)
        cancelled = None if self._chance.random() < 0.5 else False
        try:
            if cancelled is None:
                self._work.pause(after * self._chance.choice((0.0, 0.9, 1.1)))
                cancelled = self._is_cancelled(agent, number)
        finally:
            self._work.facts.append(Reminded(agent.uuid, token, cancelled))

    def _is_cancelled(self, agent: AgentRef, number: int) -> bool:
        try:
            agent.cancel_timer(number, timeout=PATIENCE)
        except TimerNotFound:
            return False
        return True

    def _gather(self, _: AgentRef, token: str) -> None:
        sender, *members = self._chance.sample(self._work.agents, MEMBERS + 1)
        group = token.replace(".", "-")
        for member in members:
            member.join(group, timeout=PATIENCE)
        with self._noted(token, *(("append", f"mail {member.uuid}", token) for member in members)):
            sender.send(f"group:{group}", token, timeout=PATIENCE)
        self._work.facts.append(Addressed(token, frozenset(member.uuid for member in members)))
        members.pop().leave(group, timeout=PATIENCE)
        self._work.facts.append(Grouped(group, frozenset(member.uuid for member in members)))

    def _merge(self, agent: AgentRef, token: str) -> None:
        child = self._work.fork(self._number, agent, token)
        self._ask(child, f"{token} for its parent")
        position = agent.merge(child, timeout=PATIENCE).position
        self._work.facts.append(TookIn(agent.uuid, child.uuid, position))

    def _pay(self, agent: AgentRef, token: str) -> None:
        budget, name = Budget(tokens=ALLOWANCE, strict=True), token.replace(".", "-")
        top = agent.fork(name=name, budget=budget, timeout=PATIENCE)
        self._work.facts.append(Forked(self._number, agent.uuid, top.uuid, None))
        purse = _Purse(top)
        try:
            payers = [self._work.fork(self._number, top, f"{token}.{number}") for number in range(2)]
            asked = [self._begin_to_ask(payer, payment(f"{token}.{number}")) for number, payer in enumerate(payers)]
            for asking in asked:
                purse.raise_until(asking)
        finally:  # whoever waits for more has it then, whatever became of this hand's calls
            purse.fill()
            self._work.facts.append(Granted(top.uuid, purse.least, purse.most))

    def _heads(self, dead: list[AgentRef]) -> tuple[tuple[str, int], ...]:
        """How far the logs of the dead go."""
        store = self._work.system._store
        while True:
            try:
                heads = store.read(lambda tx: [tx.run("log_head", uuid=uuid.uuid)[0][0] for uuid in dead])
            except StoreUnavailable:
                self._work.pause()
            else:
                return tuple((uuid.uuid, head or 0) for uuid, head in zip(dead, heads, strict=True))


class _Purse:
    """A strict budget, and what was granted of it."""

    def __init__(self, owner: AgentRef) -> None:
        self._owner = owner
        self.least = self.most = ALLOWANCE

    def raise_until(self, answer: Future[Reply]) -> None:
        """Grant more whenever an answer takes long. Raises `TimedOut` when that is of no use."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                answer.get(timeout=SLOW)
            except TimedOut:
                if time.monotonic() > until:
                    raise
                self._grant(ALLOWANCE)
            else:
                return

    def fill(self) -> None:
        """Grant enough for everybody who waits, as soon as the server is there."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self._grant(ENOUGH)
            except StoreUnavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(POLL)

    def _grant(self, tokens: int) -> None:
        self.most += tokens
        self._owner.grant(tokens=tokens, timeout=PATIENCE)
        self.least += tokens


def attached(url: str) -> AttachedSystem:
    """Attach as soon as there is a host with agent 0."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            system = ActorSystem.attach(url)
            if system._host is not None and system.agents():
                return system
            system.close()
        except IkigaiError:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)
