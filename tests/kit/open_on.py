"""Systems on parts that a test may break or hold."""

from collections.abc import Callable
from dataclasses import replace

from ikigai_actors import ActorSystem, FunctionProvider, Reply, Request
from ikigai_actors.actors.actor import AsideCall, Dispatcher, PooledActor
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.providers.base import Provider
from ikigai_actors.store import Store
from ikigai_actors.system.platform import SYSTEM_PLATFORM


def open_on(
    store: Store,
    provider: Provider | Callable[[Request], str | Reply],
    dispatcher: Callable[[int], Dispatcher] = ThreadDispatcher,
) -> ActorSystem:
    """Open a system on a store of the test's own; the agents ask the provider, or run the code."""
    parts = replace(SYSTEM_PLATFORM, open_store=lambda _: store, dispatcher=dispatcher)
    asked = FunctionProvider(provider, "code") if callable(provider) else provider
    return ActorSystem.open(provider=asked, parts=parts)


class Withholding(Dispatcher):
    """Workers that leave one actor alone while a test says so: what it is told waits."""

    def __init__(self) -> None:
        self._workers = ThreadDispatcher(2)
        self._withheld: PooledActor | None = None
        self._waits = False

    def withhold(self, actor: PooledActor) -> None:
        """Let this actor, which has nothing to do now, wait."""
        self._withheld = actor

    def let_go(self) -> None:
        """Let it run."""
        actor, self._withheld = self._withheld, None
        if actor is not None and self._waits:
            self._workers.schedule(actor)

    def schedule(self, actor: PooledActor) -> None:
        """See `Dispatcher.schedule`."""
        if actor is self._withheld:
            self._waits = True
        else:
            self._workers.schedule(actor)

    @property
    def ready(self) -> int:
        """See `Dispatcher.ready`."""
        return self._workers.ready

    def step_aside(self, call: AsideCall, name: str) -> bool:
        """See `Dispatcher.step_aside`."""
        return self._workers.step_aside(call, name)

    def close(self) -> None:
        """See `Dispatcher.close`."""
        self._workers.close()
