"""Whether programs fit the turns that are open: each function is called up to where it waits, and unwound.

Nothing is done: an act is only asked for, and whatever else the function changes is refused, as for who only looks.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ikigai_actors.programs.provider import Program
from ikigai_actors.reach.histories import settings_at_heads
from ikigai_actors.store.asker import LOOKER, acting_for
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.text.harmless import as_json, one_line


class CheckedTurn(NamedTuple):
    """An open turn of a program."""

    agent: str
    """The uuid."""
    name: str
    turn: int
    """The position of the message that opened it."""
    program: str
    """The program that runs it; with its hash, where the app has it."""
    why: str
    """Why it does not fit; empty where it does."""


def check_programs_of(database: str | None, programs: Iterable[Program]) -> list[CheckedTurn]:
    """Look at each open turn of the agents whose models are these programs. Raises as `AttachedSystem.open` does."""
    known = {one.name: one for one in programs}
    found: list[CheckedTurn] = []
    with AttachedSystem.open(database) as system, acting_for(LOOKER):
        records = {one.uuid: one for one in system.agents() if one.turn and one.living}
        for uuid, settings in settings_at_heads(system, records).items():
            if (program := known.get(str(settings.get("model")))) is not None:
                why, one = program.misfit(system.handle(uuid)), records[uuid]
                found.append(CheckedTurn(uuid, one.short, one.turn, program.version, why))
    return found


def as_lines(found: list[CheckedTurn]) -> list[str]:
    """A line for each turn that does not fit, and a summary."""
    wrong = [one for one in found if one.why]
    lines = [one_line(f"{one.name}, turn {one.turn}, {one.program}: {one.why}") for one in wrong]
    turns = "1 open turn" if len(found) == 1 else f"{len(found):,} open turns"
    return [*lines, f"{turns} of programs: {len(found) - len(wrong):,} fit, {len(wrong):,} do not"]


def checked_as_json(found: list[CheckedTurn]) -> str:
    """The same as a list of objects; ``why`` is empty where a turn fits."""
    return as_json([one._asdict() for one in found], indent=2)
