"""The parts of a running system that actors work with. `ActorSystem` makes them."""

from dataclasses import dataclass

from ikigai_actors.actors.actor import Dispatcher
from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.batched import BatchDesk
from ikigai_actors.agent.blob_cache import BlobCache
from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.hooks import HookBook
from ikigai_actors.agent.instruments import Instruments
from ikigai_actors.agent.log_eviction import LogEviction
from ikigai_actors.agent.log_loader import LogLoader
from ikigai_actors.agent.service_gate import ServiceGates
from ikigai_actors.agent.subscriptions import Publisher
from ikigai_actors.agent.succession import Processes
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.agent.turn.calls import Approver
from ikigai_actors.agent.waits import Waits
from ikigai_actors.providers.prices import Prices
from ikigai_actors.providers.selection import Providers
from ikigai_actors.records.agents.identity import RandomBytes
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.store.hosts.host import Host
from ikigai_actors.store.journal import Journal


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a running system that all its actors share, such as the journal and the executor."""

    clock: Clock
    host: Host
    journal: Journal
    log_cache: LogCache
    log_eviction: LogEviction
    log_loader: LogLoader
    blobs: BlobCache
    executor: Executor
    publisher: Publisher
    instruments: Instruments
    dispatcher: Dispatcher
    providers: Providers
    prices: Prices
    gates: ServiceGates
    toolbox: Toolbox
    waits: Waits
    batches: BatchDesk
    approver: Approver | None
    """The function that decides on calls that need approval; None when a person decides."""
    hooks: HookBook
    random_bytes: RandomBytes
    processes: Processes
    written_by: str = ""
    """The model that has written in this database. Set when the offline provider answers although nobody asked for it
    and a model has written in the database; else empty.
    """
