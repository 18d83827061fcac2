"""Trees that are deeper than a screen is wide."""

import pytest
from textual.events import Paste

from ikigai_actors import ActorSystem
from ikigai_actors.verbs.text.tree import tree_lines
from ikigai_actors.verbs.text.wrap import width
from tests.kit.app_pilot import Stage, on_stage, open_memory

DEPTH, COLUMNS = 30, 40


def chain(system: ActorSystem) -> None:
    agent = system.root
    for depth in range(1, DEPTH + 1):
        agent = agent.fork(name=f"deep-{depth}")
    system._touch(system.root)


@pytest.mark.thorough("another play of a deep tree; the list of it is in every run")
def test_the_panel_names_agents_of_any_depth_and_covers_a_narrow_window() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f3")
        for depth in range(1, DEPTH + 1):
            await stage.expect(rf"deep-{depth}\b")
        await stage.expect(rf"┄{DEPTH}┄ ○ deep-{DEPTH}")
        main = stage.application.main
        assert not main._talk.display
        assert main._tree.size.width == COLUMNS - 1  # without its padding
        await stage.press("end", "enter")
        await stage.until(lambda: stage.current == stage.system.agent(f"deep-{DEPTH}").uuid)
        assert not main._tree.display
        await stage.press("f3")
        stage.application.post_message(Paste("remember"))
        await stage.until(lambda: main.page.prompt.text == "remember")
        assert main._talk.display

    with open_memory() as system:
        chain(system)
        on_stage(system, play, size=(COLUMNS, DEPTH + 10))


def test_the_list_of_agents_of_a_deep_tree_fits_80_columns() -> None:
    with open_memory() as system:
        chain(system)
        records = system.agents()
    lines = tree_lines(records, {}, lambda record: "idle")
    assert max(width(line.text) for line in lines) <= 80
    assert f"deep-{DEPTH}" in lines[DEPTH].text
