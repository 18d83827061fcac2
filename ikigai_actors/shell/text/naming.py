"""How a person reads which agent is meant."""

from collections.abc import Callable

from ikigai_actors.records.agents import registry
from ikigai_actors.store.base import Store
from ikigai_actors.system.handles.ref import AgentRef


def named(agent: AgentRef) -> str:
    """The label of an agent, which finds it."""
    return label_in(agent.system.store)(agent.uuid)


def label_in(store: Store) -> Callable[[str], str]:
    """What gives the label of an agent for its uuid."""
    return lambda uuid: store.read(lambda tx: registry.label_of(tx, uuid))
