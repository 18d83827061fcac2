"""Sentences for a `TimedOut`: why an agent of a system has not answered yet."""

from ikigai_actors.agent.turn.calls import asking
from ikigai_actors.errors import IkigaiError
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.budgets.amounts import Paused
from ikigai_actors.system.directory import Directory


def why_late(system: Directory, uuid: str) -> str:
    """Return a sentence that says why an agent has not answered; empty if the agent is idle, or nothing is known.

    For an agent that runs here no row is read, so a caller that has timed out does not wait for the database.
    """
    from ikigai_actors.system.remote.lateness import late_by_rows, why_late_in

    try:
        if (actor := system._here(uuid)) is None:
            record = system._store.read(lambda tx: registry.get(tx, uuid))
            state = system.state_of(record)
            return system._store.read(lambda tx: late_by_rows(tx, record, state))
        hold, asked, state = actor.state.hold, asking(actor.state.calls), system._statistics_of(uuid).state
        lender = _called(system, hold.budget) if isinstance(hold, Paused) else ""
        return why_late_in(_called(system, uuid), state, lender, asked)
    except IkigaiError:  # the time-out is what is reported
        return ""


def _called(system: Directory, uuid: str) -> str:
    actor = system._here(uuid)
    return words_of(uuid) if actor is None else actor.called
