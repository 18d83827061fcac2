"""Hands: they prompt and fork agents from an attached process, and wait for the answers."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ikigai_actors import ActorSystem, AgentRef, IkigaiError
from ikigai_actors.errors import NoHost, StoreUnavailable
from ikigai_actors.system.attached.system import AttachedSystem
from tests.torture.fleet.hosts import PATIENCE


@dataclass
class Work:
    """What several hands do together."""

    system: AttachedSystem
    agents: list[AgentRef]
    seed: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Every prompt that was acknowledged: the agent's uuid, and the text."""
    complaints: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds that each answer took."""
    alone: int = 0
    """How often no host ran."""
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def under_way(self, hands: int) -> Iterator[None]:
        """Let so many hands work for the length of a block, and until each has its last answer."""
        self._over.clear()
        threads = [threading.Thread(target=self._hand, args=(f"{self.seed}.{number}",)) for number in range(hands)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _hand(self, seed: str) -> None:
        chance = random.Random(seed)
        for number in range(1_000_000):
            if self._over.is_set():
                return
            agent, token = chance.choice(self.agents), f"{seed}.{number}"
            try:
                if chance.random() < 0.05:
                    name = f"kid-{seed}-{number}".replace(".", "-")
                    self.agents.append(agent.fork(name=name, timeout=PATIENCE))
                else:
                    self._ask(agent, token)
            except StoreUnavailable:  # the server restarts: nothing was acknowledged
                self._over.wait(0.2)
            except NoHost:  # all of them have just ended: nothing was done
                self.alone += 1
                self._over.wait(0.2)
            except IkigaiError as error:
                self.complaints.append(f"{token}: {type(error).__name__}: {error}")

    def _ask(self, agent: AgentRef, token: str) -> None:
        began = time.monotonic()
        waiting = agent.prompt(token)
        self.asked.append((agent.uuid, token))
        try:
            got = waiting.get(timeout=PATIENCE).text
        except NoHost:  # the next host answers, as the judge will see
            self.alone += 1
            return
        except IkigaiError as error:
            got = f"{type(error).__name__}: {error}"
        if got != f"answer to {token}":
            self.complaints.append(f"{token} was answered with {got!r}")
        self.waits.append(time.monotonic() - began)


def attached(url: str) -> AttachedSystem:
    """Attach as soon as there is a host with agent 0."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            system = ActorSystem.attach(url)
            if system.host is not None and system.agents():
                return system
            system.close()
        except IkigaiError:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)
