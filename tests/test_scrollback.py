"""Any part of a history, read without the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AgentNotFound
from ikigai_actors.scrollback import Scrollback
from tests.echo import open_echo


def family(system: ActorSystem) -> list[str]:
    """Three generations, with clears, marks, rewinds and settings; returns their uuids, oldest first."""
    root = system.root
    root.configure(model="scripted:one", system="Be brief.")
    root.prompt("first").get(timeout=20)
    child = root.fork(name="child")
    root.prompt("what the child never sees").get(timeout=20)
    child.mark("here")
    child.prompt("second").get(timeout=20)
    child.rewind("here")
    child.configure(model="scripted:two")
    grandchild = child.fork(name="grandchild")
    child.configure(model="scripted:three")
    grandchild.prompt("third").get(timeout=20)
    grandchild.clear()
    grandchild.prompt("fourth").get(timeout=20)
    return [root.uuid, child.uuid, grandchild.uuid]


def test_every_part_is_what_the_whole_history_has_there(database: str) -> None:
    with open_echo(database) as system:
        for uuid in family(system):
            scrollback, whole = Scrollback(system.store, uuid), system.handle(uuid).history(all=True)
            for start in range(len(whole) + 1):
                for end in range(len(whole) + 2):
                    assert scrollback.between(start, end) == whole[start:end]
            assert scrollback.latest(3) == whole[-3:]
            assert scrollback.latest(1_000) == whole
            assert scrollback.before(3, 1) == whole[1:2]
            assert scrollback.before(1, 50) == []


def test_the_settings_are_those_of_the_folded_history(database: str) -> None:
    with open_echo(database) as system:
        for uuid in family(system):
            assert Scrollback(system.store, uuid).settings() == system.handle(uuid).context().settings


def test_a_child_of_a_parent_that_had_said_nothing_sees_nothing_of_it(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork()
        system.root.prompt("later").get(timeout=20)
        assert [message.kind for message in Scrollback(system.store, child.uuid).latest(50)] == ["fork"]


def test_an_unknown_agent_is_an_error(database: str) -> None:
    with open_echo(database) as system, pytest.raises(AgentNotFound):
        Scrollback(system.store, "x" * 22)


@given(depth=st.integers(1, 12), prompts=st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_a_chain_of_forks_reads_like_its_history(depth: int, prompts: list[int]) -> None:
    with open_echo("sqlite:///:memory:") as system:
        agent = system.root
        for level in range(depth):
            for number in range(prompts[level]):
                agent.prompt(f"{level}.{number}").get(timeout=20)
            agent = agent.fork()
        assert Scrollback(system.store, agent.uuid).latest(1_000) == agent.history(all=True)
