"""The parts of a running system that an agent's actor works with. Put together by `ActorSystem`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ikigai_actors.actors.actor import Dispatcher
from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.executor import Outside
from ikigai_actors.agent.log_loader import LogReader
from ikigai_actors.agent.messages import Remains, Restarted
from ikigai_actors.agent.subscriptions import Publisher
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.agent.turn.calls import Approver
from ikigai_actors.agent.waits import Waits
from ikigai_actors.providers.selection import Providers
from ikigai_actors.records.identity import RandomBytes
from ikigai_actors.records.log import Archive, Log
from ikigai_actors.records.log_unit import Birth
from ikigai_actors.store.host import Host
from ikigai_actors.store.journal import Journal
from supervisors.children import Exit


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
    crashed: Callable[[Any, Remains, "Exit | None", str], Any]
    """Makes an agent anew whose actor has died, and has its supervisor decide; gives the new actor."""
    unstarted: Callable[[str, Restarted], bool]
    """The log of a restarted agent could not be read for the moment: whether it is held until the next attempt."""
    untaken: Callable[[], None]
    """Prompts of other processes were not taken up since the store failed: has them handed over again, later."""
    bury: Callable[[str, str], None]
    """Marks an agent dead that cannot go on, with the reason, and ends its actor; returns before it is done."""
