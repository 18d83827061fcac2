"""What handles and shells need of a system: of one that runs agents, and of one that is attached to it."""

from collections.abc import Mapping
from typing import Any, Protocol

from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.statistics import AgentStatistics, SystemStatistics
from ikigai_actors.agent.subscriptions import Callback, Subscription
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.agent.waits import Waits
from ikigai_actors.records.documents import Documents
from ikigai_actors.records.identity import RandomBytes
from ikigai_actors.records.log import Archive
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.store.base import Store
from ikigai_actors.store.writer import Writer
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.system.lifecycle import Lifecycle
from ikigai_actors.system.ref import AgentRef


class System(Protocol):
    """An `ActorSystem`, or an `AttachedSystem`; see there."""

    @property
    def attached(self) -> str:
        """Who runs the agents, when it is another process; empty when this one does."""

    @property
    def store(self) -> Store: ...

    @property
    def archive(self) -> Archive: ...

    @property
    def documents(self) -> Documents: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def writer(self) -> Writer: ...

    @property
    def waits(self) -> Waits: ...

    @property
    def lifecycle(self) -> Lifecycle: ...

    @property
    def approvals(self) -> Approvals: ...

    @property
    def toolbox(self) -> Toolbox: ...

    @property
    def random_bytes(self) -> RandomBytes: ...

    @property
    def default_settings(self) -> Mapping[str, Any]: ...

    @property
    def root(self) -> AgentRef: ...

    def agent(self, text: str) -> AgentRef: ...

    def agents(self, status: str | None = None) -> list[AgentRecord]: ...

    def check_open(self) -> None: ...

    def handle(self, uuid: str) -> AgentRef: ...

    def actor(self, uuid: str) -> AgentActor: ...

    def state_of(self, record: AgentRecord) -> str: ...

    def touch(self, agent: AgentRef) -> None: ...

    def send(self, recipient: AgentRef | str, body: str, timeout: float | None = None) -> int: ...

    def close(self) -> None: ...

    def subscribe(self, callback: Callback) -> Subscription: ...

    def statistics(self) -> SystemStatistics: ...

    def statistics_of(self, uuid: str) -> AgentStatistics: ...
