"""Checks whether programs fit their open turns: calls each function with the recorded results, and unwinds it.

No act is carried out, and all other changes by the function are refused, as for a principal that may only look.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ikigai_actors.programs.provider import Program
from ikigai_actors.reach.histories import settings_at_heads
from ikigai_actors.store.asker import LOOKER, acting_for
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.text.harmless import as_json, one_line


class CheckedTurn(NamedTuple):
    """An open turn of a program, with the reason if the program does not fit the turn."""

    agent: str
    """The uuid of the agent."""
    name: str
    turn: int
    """The position of the message that opened the turn."""
    program: str
    """The name of the program that runs the turn, with its hash if the app has the program."""
    why: str
    """Why the program does not fit; empty if it does."""


def check_programs_of(database: str | None, programs: Iterable[Program]) -> list[CheckedTurn]:
    """Check each open turn of agents whose models are these programs. Raises the errors of `AttachedSystem.open`."""
    known = {program.name: program for program in programs}
    turns: list[CheckedTurn] = []
    with AttachedSystem.open(database) as system, acting_for(LOOKER):
        records = {agent.uuid: agent for agent in system.agents() if agent.turn and agent.living}
        for uuid, settings in settings_at_heads(system, records).items():
            if (program := known.get(str(settings.get("model")))) is not None:
                why, record = program.misfit(system.handle(uuid)), records[uuid]
                turns.append(CheckedTurn(uuid, record.short, record.turn, program.version, why))
    return turns


def as_lines(checked: list[CheckedTurn]) -> list[str]:
    """Return a line for each turn that does not fit its program, and a summary."""
    wrong = [turn for turn in checked if turn.why]
    lines = [one_line(f"{turn.name}, turn {turn.turn}, {turn.program}: {turn.why}") for turn in wrong]
    turns = "1 open turn" if len(checked) == 1 else f"{len(checked):,} open turns"
    return [*lines, f"{turns} of programs: {len(checked) - len(wrong):,} fit, {len(wrong):,} do not"]


def checked_as_json(turns: list[CheckedTurn]) -> str:
    """Return the checked turns as a JSON list; ``why`` is empty if a turn fits."""
    return as_json([turn._asdict() for turn in turns], indent=2)
