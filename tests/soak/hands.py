"""The hands of a worker: threads that give one command after the other, and note what was acknowledged."""

import random
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentNotFound,
    AgentRef,
    AgentStopped,
    DocumentChanged,
    DocumentNotFound,
    IkigaiError,
    MailboxFull,
    ProviderError,
    Signal,
    StoreError,
    SystemClosed,
    TurnInterrupted,
)
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.errors import Fenced, MarkNotFound
from ikigai_actors.records.messages.messages import Kind
from tests.soak.holdings import last_position
from tests.soak.ledger import Buried, Complaint, Did, Ended, Entry, Forked, Ledger, Refused, Sent, Took, Trying, Wrote
from tests.soak.model import Order

PATIENCE = 180.0
"""Seconds after which a call that has not returned is a defect, whatever was done to the database meanwhile."""
POPULATION = 40
"""Agents that are kept busy at once, more or less."""
LINES = 40
"""Lines of a document, after which another one is begun."""

DEFINITE = (AgentDead, AgentNotFound, AgentStopped, MailboxFull, DocumentChanged, DocumentNotFound, MarkNotFound)
"""Errors which say that nothing was written; so does none of the store's, as far as a caller can tell."""
EXPECTED = (*DEFINITE, Fenced, ProviderError, TurnInterrupted, StoreError, SystemClosed)

T = TypeVar("T")

HAND = "h/"
"""How mails and lines of documents begin that a hand wrote; the token follows."""


class Cast:
    """The agents that the hands know to live. Any thread may use it."""

    def __init__(self, agents: Iterable[AgentRef]) -> None:
        self._agents = {agent.uuid: agent for agent in agents}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._agents)

    def add(self, agent: AgentRef) -> None:
        """One more."""
        with self._lock:
            self._agents[agent.uuid] = agent

    def drop(self, uuids: Iterable[str]) -> None:
        """These are dead."""
        with self._lock:
            for uuid in uuids:
                self._agents.pop(uuid, None)

    def pick(self, chance: random.Random) -> AgentRef | None:
        """One of them."""
        with self._lock:
            return chance.choice(list(self._agents.values())) if self._agents else None


class Scene(NamedTuple):
    """What the hands of a round work on."""

    system: ActorSystem
    top: AgentRef
    """Forked for this round; others are forked below it."""
    cast: Cast
    crowd: list[AgentRef]
    ledger: Ledger
    over: threading.Event
    """Set at the end of the round."""


class Hand:
    """One of them."""

    def __init__(self, number: int, life: int, chance: random.Random) -> None:
        self.number = number
        self._life, self._chance = life, chance
        self._commands = 0

    def work(self, scene: Scene) -> None:
        """Give commands until the round is over, or the system is closed."""
        offers: tuple[tuple[Callable[[Scene, AgentRef, str], Entry], int], ...] = (
            (self._prompt, 10), (self._fork, 4), (self._send, 8), (self._read, 3), (self._check, 1), (self._wait, 2),
            (self._write, 5), (self._interrupt, 1), (self._stop, 1), (self._go_on, 3), (self._kill, 1),
            (self._cascade, 1), (self._terminate, 1), (self._mark, 1), (self._rewind, 1), (self._clear, 2),
        )  # fmt: skip
        commands, weights = [command for command, _ in offers], [weight for _, weight in offers]
        while not scene.over.is_set():
            agent = scene.cast.pick(self._chance) or scene.top
            [command] = self._chance.choices(commands, weights)
            if not self._give(scene, command, agent):
                return

    def _give(self, scene: Scene, command: Callable[[Scene, AgentRef, str], Entry], agent: AgentRef) -> bool:
        """Give one command; returns whether there is a system still."""
        self._commands += 1
        token, name = f"{self._life}.{self.number}.{self._commands}", command.__name__.strip("_")
        scene.ledger.write(Trying(self.number, name, agent.uuid))
        try:
            scene.ledger.write(command(scene, agent, token))
        except EXPECTED as error:
            scene.ledger.write(Refused(self.number, name, token, type(error).__name__, isinstance(error, DEFINITE)))
            if isinstance(error, AgentDead):
                scene.cast.drop([agent.uuid])
            return not isinstance(error, SystemClosed)
        except IkigaiError as error:
            scene.ledger.write(Complaint(f"{name} {token} of {agent.uuid}: {error!r}"))
        return True

    def _prompt(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        text = str(Order(f"p/{token}", self._other(scene, agent).uuid, self._path()))
        future = agent.prompt(text)
        try:
            reply = self._answer(agent, future.get)
            return Ended(self.number, agent.uuid, text, Kind.ASSISTANT, getattr(reply, "text", ""))
        except ProviderError as error:
            if "invalid_request_error" in str(error):
                scene.ledger.write(Complaint(f"prompt {token}: the model's server refused the request: {error}"))
            return Ended(self.number, agent.uuid, text, Kind.ERROR, str(error))
        except TurnInterrupted:
            return Ended(self.number, agent.uuid, text, Kind.INTERRUPTED, "")

    def _answer(self, agent: AgentRef, get: Callable[..., T]) -> T:
        """Wait for an answer; an agent that is paused meanwhile, perhaps amid its calls, goes on after a while."""
        for _ in range(int(PATIENCE / 5)):
            try:
                return get(timeout=5.0)
            except TimedOut:
                agent.signal(Signal.CONT, timeout=PATIENCE)
        raise TimedOut(f"No answer within {PATIENCE} s; the agent is {agent.state}")

    def _fork(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        if len(scene.cast) > POPULATION:
            return self._cascade(scene, agent, token)
        prompt = str(Order(f"p/{token}", self._other(scene, agent).uuid, self._path()))
        forked = agent.aio.fork(
            prompt if self._chance.random() < 0.4 else None,
            on_orphan=self._chance.choice((None, None, "reparent", "cascade", "stop", "continue")),
            restart=self._chance.choice(("permanent", "transient", "temporary")),
        )
        child = self._answer(agent, forked.get).sync
        scene.cast.add(child)
        return Forked(self.number, agent.uuid, child.uuid)

    def _send(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        to, body = self._other(scene, agent), HAND + token
        if self._chance.random() < 0.05 and scene.crowd:
            to = self._chance.choice(scene.crowd)
        if self._chance.random() < 0.2:
            return Sent(self.number, None, to.uuid, scene.system.send(to, body, PATIENCE), body)
        return Sent(self.number, agent.uuid, to.uuid, agent.send(to, body, PATIENCE), body)

    def _read(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        return Took(self.number, agent.uuid, [mail.id for mail in agent.read_mail(timeout=PATIENCE)])

    def _check(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        agent.check_mail()
        return Did(self.number, "check")

    def _wait(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        agents = None if self._chance.random() < 0.5 else [self._other(scene, agent)]
        agent.wait(agents, timeout=self._chance.choice((0.0, 0.1, 0.5)))
        return Did(self.number, "wait")

    def _write(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        """Add a line to what the document says, and expect that nobody else has."""
        documents, path, line = scene.system.documents, self._path(), HAND + token
        try:
            there = documents.read(path)
        except DocumentNotFound:
            return Wrote(self.number, path, documents.write(path, line, author=agent, expect=0, timeout=PATIENCE), line)
        body = f"{there.body}\n{line}"
        version = documents.write(path, body, author=agent, expect=there.version, timeout=PATIENCE)
        return Wrote(self.number, path, version, line)

    def _interrupt(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        return self._signal(agent, Signal.INT)

    def _stop(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        return self._signal(agent, Signal.STOP)

    def _go_on(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        return self._signal(agent, Signal.CONT)

    def _terminate(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        if agent.uuid == scene.top.uuid:
            return Did(self.number, "nothing")
        agent.signal(Signal.TERM, grace=self._chance.choice((0.0, 0.5, 2.0)), timeout=PATIENCE)
        scene.cast.drop([agent.uuid])
        return Did(self.number, "terminate")

    def _signal(self, agent: AgentRef, signal: Signal) -> Entry:
        agent.signal(signal, timeout=PATIENCE)
        return Did(self.number, signal.name)

    def _kill(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        return self._bury(scene, agent, cascade=False)

    def _cascade(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        return self._bury(scene, agent, cascade=True)

    def _bury(self, scene: Scene, agent: AgentRef, cascade: bool) -> Entry:
        if agent.uuid == scene.top.uuid:
            return Did(self.number, "nothing")
        dead = [record.uuid for record in agent.kill(cascade=cascade, reason="soak", timeout=PATIENCE)]
        scene.cast.drop(dead)
        heads = scene.system._store.read(lambda tx: {uuid: last_position(tx, uuid) for uuid in dead})
        return Buried(self.number, heads)

    def _mark(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        agent.aio.mark(token)  # not waited for: a busy agent marks at the end of its turn
        return Did(self.number, "mark")

    def _rewind(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        agent.aio.rewind()
        return Did(self.number, "rewind")

    def _clear(self, scene: Scene, agent: AgentRef, token: str) -> Entry:
        agent.aio.clear()
        return Did(self.number, "clear")

    def _other(self, scene: Scene, agent: AgentRef) -> AgentRef:
        return scene.cast.pick(self._chance) or agent

    def _path(self) -> str:
        """One of a few documents that all hands write to; others as time goes by."""
        return f"soak/{self._life}/{self._chance.randrange(3)}-{self._commands // LINES}.md"
