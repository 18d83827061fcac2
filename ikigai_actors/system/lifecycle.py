"""The lives of agents: commits the signals that handles send, and how agents look after one another."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.turn import events as on
from ikigai_actors.arguments import check_choice, check_count, check_flag, check_seconds
from ikigai_actors.errors import AgentDead, BadInput, HostElsewhere
from ikigai_actors.records import registry
from ikigai_actors.records.deaths import LifecycleChange
from ikigai_actors.records.signals import SendSignal, milliseconds
from ikigai_actors.records.supervision import AdoptChild, SetSupervision
from ikigai_actors.store.base import Store
from ikigai_actors.store.writer import Writer
from ikigai_actors.text import check_text
from supervisors.orphans import OrphanPolicy
from supervisors.signals import Signal
from supervisors.strategies import Strategy

T = TypeVar("T")

GRACE = 30.0
"""Seconds that an agent has to finish its turn after TERM."""

MOST_RESTARTS = 1_000_000
"""The highest intensity: so many restarts within a period are as good as no limit."""


class Lifecycle:
    """What handles do to the lives of the agents of one system."""

    def __init__(
        self, store: Store, writer: Writer, clock: Clock, actor: Callable[[str], AgentActor] | None = None
    ) -> None:
        """Put the parts together.

        Args:
            store: where descendants are looked up.
            writer: commits the signals.
            clock: says when they are sent.
            actor: gives the actor that runs an agent; None when another process runs the agents: that one carries out
                what is committed here.
        """
        self._store, self._writer, self._clock, self._actor = store, writer, clock, actor

    def signal(
        self,
        uuid: str,
        signal: Signal,
        make: Callable[[LifecycleChange], T],
        *,
        cascade: bool = False,
        reason: str = "",
        grace: float = GRACE,
    ) -> Future[T]:
        """Send a signal; what is made of its `LifecycleChange` comes after the commit. Raises `BadInput`."""
        if not isinstance(signal, Signal):
            raise BadInput(f"Expected a Signal, one of {', '.join(Signal)}; got {signal!r}.")
        check_text(reason, "reason")
        now, limit = self._clock.now_ms(), milliseconds(grace)
        spread = check_flag(cascade, "cascade")
        unit = SendSignal(uuid, signal, now, spread=spread, reason=reason, grace=limit, handled=self._actor is not None)
        return self._writer.ask(unit, make)

    def interrupt(self, uuid: str, *, cascade: bool = False) -> Future[bool]:
        """INT: end the turn in progress. Where the agents run the row of the signal follows."""
        if self._actor is None:
            return self.signal(uuid, Signal.INT, had_effect, cascade=cascade)
        ended: Future[bool] = Future()
        self._actor(uuid).actor_inbox.put_urgent(on.Interrupt(ended))
        if cascade:
            for record in self._store.read(lambda tx: registry.descendants(tx, uuid)):
                if record.living and record.turn:
                    with suppress(AgentDead):  # since it was read: the others are still interrupted
                        self._actor(record.uuid).actor_inbox.put_urgent(on.Interrupt(Future(), turn=record.turn))
        self.signal(uuid, Signal.INT, had_effect, cascade=cascade)
        return ended

    def adopt(self, child: str, by: str, timeout: float | None = None) -> None:
        """Have an agent supervised by another one; both by uuid. Raises as `AdoptChild` does, and `HostElsewhere`."""
        if self._actor is None:
            raise HostElsewhere("Adopt it in the shell that runs the agents: it must let the adopted one go on.")
        self._writer.perform(AdoptChild(child, by), timeout)


def supervision(
    uuid: str, strategy: str | None, intensity: int | None, period: float | None, on_orphan: str | None
) -> SetSupervision:
    """The unit that sets how an agent looks after its children. Raises `BadInput`."""
    if strategy is not None:
        check_choice(strategy, "strategy", [*Strategy])
    if intensity is not None:
        check_count(intensity, "intensity", most=MOST_RESTARTS)
    milliseconds = None if period is None else max(1, int(check_seconds(period, "period", zero=False) * 1000))
    return SetSupervision(uuid, strategy, intensity, milliseconds, check_policy(on_orphan))


def check_policy(on_orphan: str | None) -> str | None:
    """An orphan policy, or None. Raises `BadInput`."""
    return None if on_orphan is None else check_choice(on_orphan, "on_orphan", [*OrphanPolicy])


def had_effect(change: LifecycleChange) -> bool:
    """Whether a signal did something."""
    return not change.ignored


class Told(Protocol):
    """Takes the commands of an agent: its actor; or, where another process runs the agents, what stands for it."""

    def told(self, message: Any) -> bool:
        """Take a command. Returns whether it was heard, and so will be answered; one that has died hears nothing."""


Hearer = TypeVar("Hearer", bound=Told)


def tell(find: Callable[[str], Hearer], uuid: str, message: object) -> Hearer:
    """Tell the actor that runs an agent something; return it. One that crashed just now is no longer the one: look
    again.

    Args:
        find: gives the actor that runs an agent now.
        uuid: the agent.
        message: what it is told.

    Raises:
        AgentDead: there is none that hears it; beside that, what ``find`` raises.
    """
    actor = None
    while (latest := find(uuid)) is not actor:
        if latest.told(message):
            return latest
        actor = latest
    raise AgentDead(f"Agent {uuid} is dead or acts no more on this host.", uuid)
