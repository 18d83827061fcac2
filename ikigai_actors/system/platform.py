"""The platform of a system, which a simulation replaces: threads, time, randomness, database, dispatcher."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from ikigai_actors.actors.actor import Dispatcher
from ikigai_actors.actors.clock import Clock, SystemClock
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.actors.threads import SYSTEM_THREADS, Threads
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.records.agents.identity import RandomBytes
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.store.base import Store
from ikigai_actors.store.memory import open_with_tables
from ikigai_actors.store.migrations import MIGRATIONS, Migration
from ikigai_actors.system.host.deliveries import ReceiverLink
from ikigai_actors.system.host.http_link import HttpLink


@dataclass(frozen=True, slots=True)
class Platform:
    """The threads, time, randomness, database and dispatcher that a system uses."""

    threads: Threads
    clock: Clock
    random_bytes: RandomBytes
    open_store: Callable[[str | os.PathLike[str] | None], Store]
    dispatcher: Callable[[int], Dispatcher]
    """Makes the dispatcher, given the number of workers."""
    instruments: tuple[Instrument, ...] = ()
    """Hear what the agents do."""
    migrations: tuple[Migration, ...] = MIGRATIONS
    """The changes of the schema that the program knows."""
    link: Callable[[AllowedAddresses, Threads], ReceiverLink] = HttpLink
    """Makes the sender of events to webhooks and other receivers outside."""


SYSTEM_PLATFORM = Platform(SYSTEM_THREADS, SystemClock(), os.urandom, open_with_tables, ThreadDispatcher)
"""The platform of the real machine."""
