"""The states of agents as people see them: texts, of which these questions are asked."""

from ikigai_actors.agent.turn import state as turns
from ikigai_actors.agent.turn.state import BETWEEN_TURNS, Phase


def is_in_turn(state: str) -> bool:
    """Whether a turn is in progress."""
    return turns.is_working(state)


def was_cut_off(state: str) -> bool:
    """Whether a turn was cut off, and nobody goes on with it."""
    return turns.is_interrupted(state)


def was_cut_off_here(state: str) -> bool:
    """The same of a turn with which the process that asks could go on."""
    return state == Phase.INTERRUPTED


def can_be_interrupted(state: str) -> bool:
    """Whether there is something to interrupt: the agent does something, or waits in a turn."""
    return state not in BETWEEN_TURNS and not turns.is_interrupted(state)
