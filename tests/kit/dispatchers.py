"""Grounds on which one suite tests every dispatcher, and the actor that it tests them with."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any, Protocol

import pykka

from ikigai_actors.actors.actor import Dispatcher, PooledActor
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import Inbox
from ikigai_actors.testing.dispatcher import Chance, SeededDispatcher
from tests.kit.blocking_provider import DEADLINE


class Ground(Protocol):
    """A dispatcher, and how a test waits for its actors."""

    @property
    def dispatcher(self) -> Dispatcher:
        """Runs the actors."""

    def get(self, future: "pykka.Future[Any]", timeout: float = DEADLINE) -> Any:
        """What a future gives, once the actors have done what they can."""

    def busy(self, ref: "pykka.ActorRef[Recorder]") -> AbstractContextManager[None]:
        """A context in which the actor handles nothing, since it is kept busy."""


class OnThreads:
    """Workers run the actors; a test waits."""

    def __init__(self) -> None:
        self.dispatcher = ThreadDispatcher(2)

    def get(self, future: "pykka.Future[Any]", timeout: float = DEADLINE) -> Any:
        """See `Ground.get`."""
        return future.get(timeout=timeout)

    @contextmanager
    def busy(self, ref: "pykka.ActorRef[Recorder]") -> Iterator[None]:
        """See `Ground.busy`."""
        pause = Pause()
        ref.tell(pause)
        pause.wait_until_taken()
        yield
        pause.end()


class OnThisThread:
    """Nothing runs until the test waits for it; then it runs here."""

    def __init__(self, chance: Chance) -> None:
        self.dispatcher = SeededDispatcher(chance)

    def get(self, future: "pykka.Future[Any]", timeout: float = DEADLINE) -> Any:
        """See `Ground.get`."""
        assert isinstance(future, Future)
        while not future.done() and self.dispatcher.run_one():
            continue
        return future.get(timeout=0)

    @contextmanager
    def busy(self, ref: "pykka.ActorRef[Recorder]") -> Iterator[None]:
        """See `Ground.busy`."""
        self.dispatcher.run_until_idle()
        yield


class InOrder:
    """A source of chance that knows one answer."""

    def randrange(self, stop: int, /) -> int:
        """Go on in order."""
        return 0


GROUNDS: dict[str, Callable[[], Ground]] = {
    "workers": OnThreads,
    "in order": lambda: OnThisThread(InOrder()),
    "seed 1": lambda: OnThisThread(Random(1)),
    "seed 2": lambda: OnThisThread(Random(2)),
}


class Pause:
    """A message that keeps its actor busy until the test lets it go on."""

    def __init__(self) -> None:
        self._taken, self._over = threading.Event(), threading.Event()

    def take(self) -> None:
        self._taken.set()
        assert self._over.wait(DEADLINE)

    def wait_until_taken(self) -> None:
        assert self._taken.wait(DEADLINE)

    def end(self) -> None:
        self._over.set()


class Hold(Pause):
    """Holds the inbox of its actor, and then keeps it busy until the test lets it go on."""

    def __init__(self, inbox: Inbox) -> None:
        super().__init__()
        self._inbox = inbox

    def take(self) -> None:
        self._inbox.held = True
        super().take()


class Recorder(PooledActor):
    """Keeps what it receives; does what some messages say."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__(dispatcher)
        self.received: list[Any] = []
        self.hooks: list[Any] = []
        self.endless = True

    def on_start(self) -> None:
        self.hooks.append("start")

    def on_stop(self) -> None:
        self.hooks.append("stop")

    def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        self.hooks.append(("failure", exception_value))

    def on_death(self, reason: BaseException | None) -> None:
        self.hooks.append(("death", reason))

    def on_receive(self, message: Any) -> Any:
        match message:
            case Pause():
                return message.take()
            case BaseException():
                raise message
            case "list":
                return list(self.received)
            case "hold":
                self.actor_inbox.held = True
            case "again" if self.endless:
                self.actor_ref.tell("again")
                return None
            case ("stop and raise", BaseException() as error):
                self._stop()
                raise error
            case ("ask", pykka.ActorRef() as other):
                return other.ask("x", timeout=DEADLINE)
        self.received.append(message)
        return message
