"""Trees that are deeper than a screen is wide."""

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.shell.text.tree import tree_lines
from ikigai_actors.shell.text.wrap import width
from tests.kit.app_pilot import Stage, on_stage, open_memory

DEPTH = 30


def chain(system: ActorSystem) -> None:
    agent = system.root
    for depth in range(1, DEPTH + 1):
        agent = agent.fork(name=f"deep-{depth}")
    system._touch(system.root)


@pytest.mark.parametrize(("columns", "talk"), [(80, 41), (40, 19)])
def test_the_panel_names_agents_of_any_depth_and_leaves_most_to_the_talk(columns: int, talk: int) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f3")
        for depth in range(1, DEPTH + 1):
            await stage.expect(rf"deep-{depth}\b")
        await stage.expect(rf"┄{DEPTH}┄ ○ deep-{DEPTH}")
        assert stage.application.main.page.transcript.size.width >= talk

    with open_memory() as system:
        chain(system)
        on_stage(system, play, size=(columns, DEPTH + 10))


def test_the_list_of_agents_of_a_deep_tree_fits_80_columns() -> None:
    with open_memory() as system:
        chain(system)
        records = system.agents()
    lines = tree_lines(records, {}, lambda record: "idle")
    assert max(width(line.text) for line in lines) <= 80
    assert f"deep-{DEPTH}" in lines[DEPTH].text
