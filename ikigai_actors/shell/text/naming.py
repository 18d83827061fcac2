"""How a person reads which agent is meant."""

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.system.handles.ref import AgentRef


def named(agent: AgentRef) -> str:
    """The name of an agent, for a person."""
    return called(agent.record)


def called(record: AgentRecord) -> str:
    """The name of an agent, for a person, by its row."""
    return f"{record.name} ({record.uuid[:6]})" if record.name else record.uuid[:6]
