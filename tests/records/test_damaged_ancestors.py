"""Damage of an ancestor's log: its descendants hear of it and live; only whose own rows are wrong is marked dead."""

import pytest

from ikigai_actors import ActorSystem, ProviderError
from ikigai_actors.errors import HistoryError
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE
from tests.kit.damage import damage, message, more, without
from tests.kit.databases import eventually
from tests.kit.echo import open_echo


@pytest.fixture
def family(durable: str) -> tuple[str, str, str]:
    """A database with agent 0, which has spoken, a child and a grandchild; with the uuids of the first two."""
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork(name="child")
        child.prompt("two").get(timeout=DEADLINE)
        child.fork(name="grandchild")
        uuids = system.root.uuid, child.uuid
    return (durable, *uuids)


def refused(system: ActorSystem, name: str, about: str) -> None:
    """An agent's prompt fails, the damaged agent and the remedy are named, and the agent lives."""
    with pytest.raises(HistoryError, match="ikigai fsck") as refusal:
        system.agent(name).prompt("x").get(timeout=DEADLINE)
    assert refusal.value.agent == about
    assert about in str(refusal.value)
    assert system.agent(name).record.status == "running"


@pytest.mark.slow("takes a tenth of a second")
def test_a_hole_in_the_log_of_agent_0_buries_nobody(family: tuple[str, str, str]) -> None:
    database, root, _ = family
    damage(database, without(root, "= 1"))
    for _ in range(2):
        with open_echo(database) as system:
            for name in (root, "child", "grandchild"):
                refused(system, name, root)
    with open_echo(database) as system:
        assert all(record.living for record in system.agents())


def test_an_ancestor_whose_log_has_lost_its_end_buries_nobody(family: tuple[str, str, str]) -> None:
    database, root, _ = family
    damage(database, without(root, "> 1"))
    with open_echo(database) as system:
        for name in ("child", "grandchild"):
            refused(system, name, root)
        assert all(record.living for record in system.agents())


def test_a_damaged_agent_is_dead_and_its_child_lives(family: tuple[str, str, str]) -> None:
    database, root, child = family
    damage(database, message(child, 4, "data = '{'"))
    with open_echo(database) as system:
        refused(system, "grandchild", child)
        with pytest.raises(HistoryError, match="no JSON"):
            system.agent(child).prompt("x").get(timeout=DEADLINE)
        eventually(lambda: not system.agent(child).record.living, "its death")
        refused(system, "grandchild", child)
        assert system.agent(root).prompt("x").get(timeout=DEADLINE).text == "x / 3"


def test_what_cannot_be_read_before_a_clear_keeps_nobody_from_what_follows(family: tuple[str, str, str]) -> None:
    database, root, _ = family
    with open_echo(database) as system:
        system.agent("grandchild").clear()
    damage(database, without(root, "= 1"))
    with open_echo(database) as system:
        assert system.agent("grandchild").prompt("x").get(timeout=DEADLINE).text == "x / 1"
        refused(system, "child", root)


@pytest.mark.sample(2, "a family for each")
@pytest.mark.parametrize(
    "setting",
    ['{"model": 5}', '{"system": ["x"]}', '{"tools": 5}', '{"options": 5}', '{"max_tokens": "x"}', '{"notify": 5}'],
)
def test_a_setting_of_a_wrong_type_is_an_error_of_the_prompt_that_another_setting_mends(
    family: tuple[str, str, str], setting: str
) -> None:
    database, root, _ = family
    damage(database, more(root, (4, "configure", setting)))
    key = setting.split('"')[1]
    with open_echo(database) as system:
        heir = system.root.fork()
        assert [violation.agent for violation in check(system._store)] == [root]
        for agent in (system.root, heir):
            for _ in range(2):
                with pytest.raises(ProviderError, match=f"setting {key} to be"):
                    agent.prompt("x").get(timeout=DEADLINE)
            agent.configure(**{key: None})
            assert agent.prompt("y").get(timeout=DEADLINE).text.startswith("y")
        assert not any(record.exit_reason for record in system.agents())
        assert system.agent("child").prompt("z").get(timeout=DEADLINE).text.startswith("z")
