"""The parts of a running system that an agent's actor works with. Put together by `ActorSystem`."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ikigai_actors.agent import AgentActor, Buried
from ikigai_actors.clock import Clock
from ikigai_actors.dispatch import Dispatcher
from ikigai_actors.errors import ProviderUnknown
from ikigai_actors.host import Host
from ikigai_actors.journal import Committed, Journal, Verdict
from ikigai_actors.log import Archive, Log
from ikigai_actors.outside import Outside
from ikigai_actors.providers.base import Provider
from ikigai_actors.publisher import Publisher
from ikigai_actors.units import FIRST_EPOCH, Birth, Bury

logger = logging.getLogger(__name__)


class Handles(Protocol):
    """Makes the handle of an agent."""

    def __call__(self, uuid: str) -> Any: ...


class Providers:
    """The registered providers by name, and the one for agents whose settings name none."""

    def __init__(self, registered: Mapping[str, Provider], default: Provider, default_model: str = "") -> None:
        self._registered = {**registered, default.name: default}
        self._default = default
        self._default_model = default_model

    def choose(self, setting: str | None) -> tuple[Provider, str]:
        """The provider and the model's name within it, for an agent's ``model`` setting. Raises `ProviderUnknown`."""
        if not setting:
            return self._default, self._default_model
        name, _, model = setting.partition(":")
        provider = self._registered.get(name)
        if provider is None:
            known = ", ".join(sorted(self._registered))
            raise ProviderUnknown(
                f"The model setting {setting!r} names provider {name!r}, which is not registered. Registered: {known}. "
                "Change the setting, or open the system with providers={...}."
            )
        return provider, model

    def __iter__(self) -> Any:
        return iter(self._registered.values())


@dataclass(slots=True)
class Runtime:
    """What actors share."""

    clock: Clock
    host: Host
    journal: Journal
    archive: Archive
    outside: Outside
    publisher: Publisher
    dispatcher: Dispatcher
    providers: Providers
    handle: Handles
    actors: dict[str, AgentActor] = field(default_factory=dict)
    """The actors of this host's agents, by uuid."""

    def start(self, uuid: str, name: str | None, epoch: int, head: int, turn: int) -> AgentActor:
        """Run an agent that is in the registry."""
        actor = AgentActor(self, uuid, name, epoch, head, turn)
        self.actors[uuid] = actor
        return actor

    def spawn(self, birth: Birth, log: Log) -> None:
        """Run a child that was just born; its turn begins when it has a prompt."""
        head = birth.messages[-1].id
        self.start(birth.uuid, birth.name, FIRST_EPOCH, head, birth.turn).begin(log)

    def bury(self, uuid: str, reason: str) -> None:
        """Mark an agent dead that cannot go on, and end its actor; returns before it is done. Agent 0 is refused, and stays."""

        def done(verdict: Verdict) -> None:
            if isinstance(verdict, Committed):
                logger.error("Agent %s is dead: %s", uuid, reason)
                if (actor := self.actors.pop(uuid, None)) is not None:
                    actor.actor_inbox.put_urgent(Buried())
            else:
                logger.error("Agent %s could not be buried (%s): %s", uuid, verdict.error, reason)

        self.journal.submit(Bury(uuid, reason, self.clock.now_ms()), done)
