"""A team with a race, found by simulation; and the same team mended.

Three workers each add a finding to a shared document: read it, append a line, write it back. One after another that
works, in every test that anybody wrote by hand. When two of them overlap, one finding is lost. `simulate` finds such an
overlap among the schedules, and shrinks it to the fewest preemptions.

The mended workers say which version they have read (``expect``), and begin again when somebody was faster.

    pytest examples/test_my_team.py
"""

from collections.abc import Callable

import pytest

from ikigai_actors import DocumentChanged, DocumentNotFound, FunctionProvider, Request, current_agent
from ikigai_actors.testing import Faults, Simulation, simulate
from ikigai_actors.types import Documents

FINDINGS = "findings.md"
WORKERS = ("anna", "bert", "carl")


def read(documents: Documents) -> tuple[str, int]:
    """The findings so far, and their version."""
    try:
        document = documents.read(FINDINGS)
    except DocumentNotFound:
        return "", 0
    return document.body, document.version


def careless(request: Request) -> str:
    """Adds a finding, whatever others have written meanwhile."""
    me = current_agent()
    body, _ = read(me.system.documents)
    me.system.documents.write(FINDINGS, f"{body}{me.name}\n", author=me)
    return "added"


def careful(request: Request) -> str:
    """Adds a finding to the version that it has read, or reads again."""
    me = current_agent()
    while True:
        body, version = read(me.system.documents)
        if me.name in body.split():  # before a crash that cut this turn off
            return "added before"
        try:
            me.system.documents.write(FINDINGS, f"{body}{me.name}\n", author=me, expect=version)
        except DocumentChanged:
            continue
        return "added"


def team(worker: Callable[[Request], str]) -> Callable[[Simulation], None]:
    """Three workers at once, and then a look at what they have found."""

    def run(world: Simulation) -> None:
        system = world.open(providers={"worker": FunctionProvider(worker, "worker")})
        workers = [system.root.fork("What did you find?", name=name, model="worker:any") for name in WORKERS]
        for each in workers:
            each.reply()
        everybody_is_heard(world)

    return run


def everybody_is_heard(world: Simulation) -> None:
    """Nobody's finding is lost."""
    body, _ = read(world.system.documents)
    workers = [record.name for record in world.system.agents() if record.name]
    assert sorted(body.split()) == sorted(name for name in workers if name), body


def test_the_careless_team_loses_a_finding() -> None:
    with pytest.raises(AssertionError) as failure:
        simulate(team(careless))
    print(failure.value, *failure.value.__notes__, sep="\n")


def test_the_careful_team_loses_none() -> None:
    simulate(team(careful))


def test_not_even_when_its_process_crashes() -> None:
    simulate(team(careful), after=everybody_is_heard, faults=Faults(crashes=2))
