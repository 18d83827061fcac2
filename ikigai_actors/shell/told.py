"""Agents in words, as the shell tells of them."""

from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.ref import AgentRef
from ikigai_actors.shell.desk import named


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
