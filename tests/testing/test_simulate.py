"""`simulate`: finds the schedule under which a program fails, shrinks it, and runs it again."""

import ast
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from ikigai_actors import FunctionProvider, Request, ScriptedProvider, current_agent
from ikigai_actors.testing import (
    Faults,
    Schedule,
    Simulation,
    agent_trees,
    prompts,
    replies,
    schedules,
    simulate,
)
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import Tree
from tests.kit.echo import echo
from tests.kit.program import unmeasured
from tests.kit.programs import cheaper

FAST = settings(max_examples=10, deadline=None, database=None)


def counts(world: Simulation) -> None:
    """Two workers add one to a counter that is a document: read, then write."""

    def add(request: Request) -> str:
        documents = current_agent().system.documents
        count = int(documents.read("count").body)
        documents.write("count", str(count + 1))
        return "added"

    system = world.open(providers={"worker": FunctionProvider(add, "worker")})
    system.documents.write("count", "0")
    for worker in [system.root.fork("add", model="worker") for _ in range(2)]:
        worker.reply()
    assert system.documents.read("count").body == "2"


def failure(run: Callable[[], None]) -> tuple[AssertionError, str]:
    """How it fails: the error, and the story in its notes."""
    with pytest.raises(AssertionError) as caught:
        run()
    return caught.value, "\n".join(caught.value.__notes__)


@pytest.mark.slow("takes a tenth of a second")
def test_a_lost_update_is_found_and_its_line_replays_it() -> None:
    _, story = failure(lambda: simulate(counts, examples=100))
    assert story.count("add_document_version path=count") == 3
    [line] = [line for line in story.splitlines() if line.startswith("Replay: ")]
    replay = ast.literal_eval(line.removeprefix("Replay: "))
    _, again = failure(lambda: simulate(counts, replay=replay))
    assert line in again
    simulate(counts, replay="")


@pytest.mark.thorough("a second failure that is found")
@cheaper("examples", 8, 60, "more schedules")
def test_after_a_crash_what_must_hold_is_looked_at_all_the_same(examples: int) -> None:
    looked: list[bool] = []

    def team(world: Simulation) -> None:
        system = world.open(ScriptedProvider(echo))
        system.root.fork("part", name="anna").reply()

    def after(world: Simulation) -> None:
        crashed = any(line.kind == "crash" for line in world.trace.lines)
        looked.append(crashed)
        assert not any(record.turn for record in world.system.agents())

    simulate(team, after=after, faults=Faults(crashes=1), examples=examples)
    assert True in looked
    assert False in looked


@pytest.mark.slow("takes a tenth of a second")
@FAST
@given(schedule=schedules(), shape=agent_trees(), text=prompts(), reply=replies())
def test_strategies_make_programs_that_run(schedule: Schedule, shape: Tree, text: str, reply: object) -> None:
    with simulated(schedule) as world:
        system = world.open(ScriptedProvider([reply]))  # type: ignore[list-item]  # one of its kinds
        agents = shape.grow(system.root)
        assert len(system.agents()) == len(agents)
        agents[-1].prompt(text)
        world.settle()


def test_the_plugin_and_the_package_import_nothing_heavy() -> None:
    code = (
        "import sys, ikigai_actors.testing.pytest_plugin; from ikigai_actors.testing import ManualClock; "
        "print([name for name in sys.modules if '.' not in name] + [m for m in sys.modules if 'ikigai' in m])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=unmeasured())
    loaded = set(ast.literal_eval(run.stdout))
    assert not {"hypothesis", "anthropic", "psycopg", "sqlite3", "ikigai_actors.system.system"} & loaded
