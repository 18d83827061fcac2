"""The parts of a running system that an agent's actor works with. Put together by `ActorSystem`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ikigai_actors.actor_messages import Remains, Restarted
from ikigai_actors.append import Birth
from ikigai_actors.calls import Approver
from ikigai_actors.clock import Clock
from ikigai_actors.errors import ProviderUnknown
from ikigai_actors.host import Host
from ikigai_actors.identity import RandomBytes
from ikigai_actors.journal import Journal
from ikigai_actors.log import Archive, Log
from ikigai_actors.outside import Outside
from ikigai_actors.pooled import Dispatcher
from ikigai_actors.providers.base import Provider
from ikigai_actors.publisher import Publisher
from ikigai_actors.reader import LogReader
from ikigai_actors.toolbox import Toolbox
from ikigai_actors.waits import Waits
from supervisors.children import Exit


class Providers:
    """The registered providers by name, and the one for agents whose settings name none."""

    def __init__(
        self,
        registered: Mapping[str, Provider],
        default: Provider,
        default_model: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = dict(settings or {})
        """What goes to the models of agents that have not set it."""
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

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._registered.values())


@dataclass(frozen=True, slots=True)
class Runtime:
    """What actors share."""

    clock: Clock
    host: Host
    journal: Journal
    archive: Archive
    reader: LogReader
    outside: Outside
    publisher: Publisher
    dispatcher: Dispatcher
    providers: Providers
    toolbox: Toolbox
    waits: Waits
    approver: Approver | None
    """Decides on calls that ask; None when a person does, in good time."""
    random_bytes: RandomBytes
    handle: Callable[[str], object]
    """The handle of the agent with this uuid, for `current_agent`."""
    expect: Callable[[Birth], None]
    """Makes the actor of a child before its row is committed: whoever finds the row finds the actor, which is held."""
    spawn: Callable[[Birth, Log | None], None]
    """Lets a child run that was just born, with its log if that is at hand; its turn begins when it has a prompt."""
    forget: Callable[[Birth], None]
    """Ends the actor of a child that was not born after all."""
    happened: Callable[[object], None]
    """Takes the answer of a unit that did something to others than its agent."""
    crashed: Callable[[Any, Remains, "Exit | None", str], Any]
    """Makes an agent anew whose actor has died, and has its supervisor decide; gives the new actor."""
    unstarted: Callable[[str, Restarted], bool]
    """The log of a restarted agent could not be read for the moment: whether it is held until the next attempt."""
    untaken: Callable[[], None]
    """Prompts of other processes were not taken up since the store failed: has them handed over again, later."""
    bury: Callable[[str, str], None]
    """Marks an agent dead that cannot go on, with the reason, and ends its actor; returns before it is done."""
