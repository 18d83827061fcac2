"""Agents in words, as the shell tells of them."""

from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.ref import AgentRef
from ikigai_actors.registry import AgentRecord
from ikigai_actors.system import ActorSystem


def last_active(system: ActorSystem) -> AgentRecord:
    """The agent at which a person looked last, if it lives; else agent 0."""
    seen = [record for record in system.agents() if record.living and record.active_at]
    return max(seen, key=lambda record: record.active_at, default=system.root.record)


def named(agent: AgentRef) -> str:
    """An agent as a person knows it."""
    record = agent.record
    return f"{record.name} ({record.uuid[:6]})" if record.name else record.uuid[:6]


def inherited(agent: AgentRef) -> str:
    """How many messages of its ancestors a child began with: those that clears and rewinds left."""
    log = agent.system.archive.load(agent.uuid)
    count = sum(end - start for start, end in log.view(log.base).visible(log.base))
    return "1 message" if count == 1 else f"{count} messages"


def ended(agent: AgentRef, outcome: object) -> str:
    """What is told of a turn that ended in the background."""
    match outcome:
        case Reply():
            return f"{named(agent)} has answered: /switch {agent.record.short} and /history show it"
        case TurnInterrupted():
            return f"{named(agent)}: its turn was interrupted"
        case ProviderError() as error:
            return f"{named(agent)}: its turn ended with an error: {error}"
        case _:
            return f"{named(agent)}: {outcome}"
