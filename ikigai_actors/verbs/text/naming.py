"""Names of agents for people."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ikigai_actors.errors import AgentError, StoreError
from ikigai_actors.reach.views import label_of
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.words import words_of

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef, System


def name_by_uuid(uuid: str) -> str:
    """Return the two words of an agent of which only the uuid is known."""
    return words_of(uuid)


def named(agent: "AgentRef") -> str:
    """Return the label of an agent, which commands accept as its name."""
    return shown_name_in(agent.system)(agent.uuid)


def said_by(error: BaseException, called: Callable[[str], str] = words_of) -> str:
    """Return the text of an error for a person, with the name of the agent in place of the agent's uuid."""
    agent = error.agent if isinstance(error, AgentError) else ""
    if not is_agent_uuid(agent) or agent not in str(error):
        return str(error)
    try:
        return str(error).replace(agent, called(agent))
    except StoreError:  # nobody can be asked for the name
        return str(error).replace(agent, words_of(agent))


def shown_name_in(system: "System") -> Callable[[str], str]:
    """Return a function that returns the label of an agent of a system, by uuid."""
    return lambda uuid: label_of(system, uuid)
