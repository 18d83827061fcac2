"""The lists of the application where agents are too many to be read each time."""

from collections.abc import Iterator

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.reach.snapshots import Snapshot, Wish
from ikigai_actors.records.agents.lists import MOST_LISTED
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.app.agent_rows import agent_rows
from ikigai_actors.shell.app.agent_table import Order, table
from ikigai_actors.shell.app.tree_rows import TreeRow, TreeView, tree_rows
from ikigai_actors.shell.app.widgets.agent_list import kill_question, rest_line
from ikigai_actors.system.handles.ref import AgentRef
from tests.kit.app_pilot import Stage, on_stage
from tests.shell.app.test_app_rows import watching

MANY = 450


@pytest.fixture(scope="module")
def crowd() -> Iterator[tuple[ActorSystem, list[AgentRef]]]:
    """Many children of agent 0, of which the first has 250 children, and the sixth one that has a name."""
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system:
        children = system.root.fork(prompts=[None] * MANY)
        children[0].fork(prompts=[None] * 250)
        children[5].fork(name="zx9q")
        system.root.fork(prompts=[None] * MOST_LISTED)  # newer than all of these
        yield system, children


def taken(crowd: tuple[ActorSystem, list[AgentRef]], wish: Wish) -> Snapshot:
    return watching(crowd[0])._take(crowd[0].root.uuid, wish)


def tree_of(snapshot: Snapshot, wanted: str = "") -> dict[str, TreeRow]:
    rows = tree_rows(agent_rows(snapshot, 0), TreeView(wanted=wanted), snapshot.hidden)
    return {row.agent.uuid: row for row in rows}


@pytest.mark.thorough("a second play of many agents")
def test_the_screen_has_those_that_were_used_last_and_what_a_text_or_a_mark_adds(
    crowd: tuple[ActorSystem, list[AgentRef]],
) -> None:
    _, children = crowd
    snapshot = taken(crowd, Wish())
    living = MANY + 250 + 1 + MOST_LISTED + 1
    assert (len(snapshot.listed), snapshot.rest) == (MOST_LISTED, living - MOST_LISTED)
    assert snapshot.current.uuid in {record.uuid for record in snapshot.listed}
    assert rest_line(snapshot) == f"and {living - MOST_LISTED} more: / searches"
    meters = table(agent_rows(snapshot, 0), Order(), snapshot.census).meters
    assert (meters.agents, meters.working) == (living, 0)
    found_by_text = taken(crowd, Wish(text="zx9q", kept=frozenset((children[9].uuid,))))
    rows = table(agent_rows(found_by_text, 0), Order(wanted="zx9q")).rows
    assert [row.name for row in rows] == ["zx9q"]
    assert children[9].uuid in {record.uuid for record in found_by_text.listed}
    assert rest_line(found_by_text) == ""
    by_uuid = taken(crowd, Wish(text=children[3].uuid))
    rows = table(agent_rows(by_uuid, 0), Order(wanted=children[3].uuid)).rows
    assert [(row.uuid, row.name.startswith(words_of(children[3].uuid))) for row in rows] == [(children[3].uuid, True)]
    assert "more letters" in rest_line(taken(crowd, Wish(text="-")))


@pytest.mark.thorough("a second play of the tree")
def test_the_tree_has_the_first_of_each_level_and_more_of_whom_a_person_opens(
    crowd: tuple[ActorSystem, list[AgentRef]],
) -> None:
    system, children = crowd
    wish = Wish(tree=True)
    rows = tree_of(taken(crowd, wish))
    top = rows[system.root.uuid]
    assert [rows[child.uuid].wanted for child in children[:MOST_LISTED]] == [True] * MOST_LISTED
    assert children[MOST_LISTED].uuid not in rows
    assert top.below.agents + top.hidden == MANY + MOST_LISTED
    assert (rows[children[0].uuid].hidden, rows[children[5].uuid].hidden) == (250, 1)
    opened = tree_of(taken(crowd, Wish(tree=True, opened={system.root.uuid: 400, children[0].uuid: 200})))
    assert (opened[children[0].uuid].below.agents, opened[children[0].uuid].hidden) == (200, 50)
    assert (children[399].uuid in opened, children[400].uuid in opened) == (True, False)
    named = system.agent("zx9q").uuid
    searched = tree_of(taken(crowd, Wish(tree=True, text="zx9q")), "zx9q")
    assert list(searched) == [system.root.uuid, children[5].uuid, named]


def test_whole_branches_are_summed_up_over_all_agents_when_that_is_wished(
    crowd: tuple[ActorSystem, list[AgentRef]],
) -> None:
    system, children = crowd
    system.agent("zx9q").charge(tokens=70)
    snapshot = taken(crowd, Wish(branches=True, kept=frozenset((children[5].uuid,))))
    rows = {row.uuid: row.tokens for row in agent_rows(snapshot, 0, branches=True)}
    assert (rows[system.root.uuid], rows[children[5].uuid]) == (70, 70)
    assert taken(crowd, Wish()).branches == {}


def test_who_is_killed_with_all_below_is_asked_for_where_these_are_not_counted() -> None:
    question = kill_question(("a",), "lead", None)
    assert (question.text, question.answers["y"][1]) == ("Kill lead and all below?", " --cascade")


@pytest.mark.thorough("another play of the list; its rows are in every run")
def test_a_person_finds_who_is_not_in_sight_by_the_screen_the_tree_and_a_few_letters(
    crowd: tuple[ActorSystem, list[AgentRef]],
) -> None:
    system, _ = crowd
    named = system.agent("zx9q").uuid

    async def play(stage: Stage) -> None:
        await stage.press("f4")
        await stage.expect(r"and \d+ more: / searches")
        await stage.press("slash")
        await stage.type("zx9")
        await stage.expect(r"○ zx9q +idle")
        await stage.press("escape", "escape", "f3")
        await stage.expect(r"▸ \d+ more")
        await stage.press("slash")
        await stage.type("zx9q")
        await stage.expect(r"○ zx9q")
        await stage.press("escape", "escape", "f3", "ctrl+p")
        await stage.type("zx9q")
        await stage.expect(r"zx9q +idle")
        await stage.press("enter")
        await stage.until(lambda: stage.current == named)

    on_stage(system, play)
