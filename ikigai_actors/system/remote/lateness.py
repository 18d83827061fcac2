"""Sentences on why an agent has not answered yet, and on what to do about it.

buyer waits for budget of lead: grant more.
buyer asks about bash: approve or deny it.
"""

from collections.abc import Iterable

from ikigai_actors.agent.turn.calls import Call, asking, recover
from ikigai_actors.agent.turn.state import HOSTLESS, WAITS_FOR, Phase, asks_person, lacks_program
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.holds import pauses_of
from ikigai_actors.records.log.heads import section
from ikigai_actors.store.base import Transaction
from supervisors.signals import Status


def late_by_rows(tx: Transaction, record: AgentRecord, state: str) -> str:
    """Return the sentence on why an agent of another process is late, by its rows and the state that they show."""
    turn = registry.turns_that_asked(tx, [record.uuid]).get(record.uuid)
    asked = asking(recover(section(tx, record.uuid, turn))) if turn is not None else ()
    paused = pauses_of(tx, [record.uuid]).get(record.uuid)
    lender = registry.get(tx, paused.budget).short if paused is not None else ""
    return why_late_in(record.short, Phase.WAITING_FOR_APPROVAL if asked else state, lender, asked)


def why_late_in(name: str, state: str, lender: str, asked: Iterable[Call]) -> str:
    """Return the sentence on why an agent is late; empty if the agent has nothing to do.

    Args:
        name: the name of the agent for people.
        state: the state of the agent, as people see it.
        lender: the agent that has the budget for which it waits.
        asked: its calls that wait for a decision.
    """
    match state:
        case Phase.IDLE:
            return ""
        case Phase.WAITING_FOR_BUDGET:
            return f"{name} waits for budget of {lender}: grant more."
        case _ if asks_person(state):
            tools = ", ".join(dict.fromkeys(call.name for call in asked))
            return f"{name} asks about {tools}: approve or deny it (system.approvals; /approve in a shell)."
        case _ if state == HOSTLESS:
            return f"{name} was cut off in its turn, and no process runs it: start one."
        case Phase.INTERRUPTED:
            return f"{name} was cut off in its turn: resume() goes on with it."
        case Status.STOPPED:
            return f"{name} is stopped: the signal CONT lets it go on."
        case _ if lacks_program(state):
            return f"{name} is {state}: start a process that has the program."
        case _ if state.startswith(WAITS_FOR):
            return f"{name} {state}."
    return f"{name} is {state}."
