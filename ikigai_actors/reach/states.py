"""Classifies the states of agents, which are texts."""

from ikigai_actors.agent.turn import state as turns
from ikigai_actors.agent.turn.state import BETWEEN_TURNS, Phase


def is_in_turn(state: str) -> bool:
    """Return whether an agent in this state is in a turn that goes on."""
    return turns.is_working(state)


def was_cut_off(state: str) -> bool:
    """Return whether an agent in this state has a turn that was cut off and is not resumed."""
    return turns.is_interrupted(state)


def was_cut_off_here(state: str) -> bool:
    """Return whether an agent in this state has a cut-off turn that this process could resume."""
    return state == Phase.INTERRUPTED


def can_be_interrupted(state: str) -> bool:
    """Return whether an agent in this state can be interrupted: it works, or waits in a turn."""
    return state not in BETWEEN_TURNS and not turns.is_interrupted(state)
