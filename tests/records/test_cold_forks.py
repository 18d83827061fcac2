"""Forks of agents whose logs were not read: one row, and nothing is read for it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, AgentStopped, AsyncAgentRef, Message, ScriptedProvider, Signal
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Store
from ikigai_actors.verbs.text.wording import inherited
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo, kinds, open_echo
from tests.kit.logs import write_log
from tests.kit.open_on import open_on
from tests.kit.trees import says

MANY = 1_000


def lengthen(system: ActorSystem, agent: AgentRef, count: int = MANY) -> None:
    """Give an agent a long log, behind its actor's back: the system is to be closed then."""
    head = len(agent.history(all=True))
    log = says(agent.uuid, *range(head + 1, head + count + 1))
    system._store.write(lambda tx: write_log(tx, log))


@contextmanager
def reopened(database: str) -> Iterator[ActorSystem]:
    """A system that was closed and has come back; its database is sound in the end."""
    with open_echo(database, resume=False) as system:
        yield system
        assert check(system._store) == []


def reads(system: ActorSystem) -> tuple[int, int]:
    """How many logs were read, and how many messages they had."""
    return system._log_cache.read_logs, system._log_cache.read_messages


@pytest.mark.sample(1, "a database each")
@pytest.mark.slow("takes a second")
def test_the_first_forks_after_a_start_read_no_log_and_the_child_has_the_whole_history(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.configure(system="Be brief.")
        lengthen(system, system.root)
    with reopened(durable) as system:
        root = system.root
        first = root.fork(name="first")
        second = root.fork(name="second", model="scripted:other")
        grandchild = second.fork()
        assert reads(system) == (0, 0)
        assert [system._actor(each.uuid).state.phase for each in (root, first, grandchild)] == [Phase.UNLOADED] * 3
        assert inherited(first) == f"{MANY + 1} messages"
        assert reads(system) == (0, 0)
        whole = root.history()
        assert kinds(whole[-2:]) == ["fork", "fork"]
        assert first.history()[:-1] == whole[:-2]
        assert second.history()[:-3] == whole[:-1]
        assert [message.agent_uuid for message in grandchild.history()[-4:]] == [
            root.uuid, second.uuid, second.uuid, grandchild.uuid,
        ]  # fmt: skip
        assert grandchild.context().settings == {"system": "Be brief.", "model": "scripted:other"}
        assert first.prompt("x").get(timeout=DEADLINE).text == f"x / {1}"


@pytest.mark.slow("takes a tenth of a second")
def test_a_child_that_inherits_a_long_history_forks_without_reading_it(durable: str) -> None:
    with open_echo(durable) as system:
        lengthen(system, system.root)
    with open_echo(durable) as system:
        system.root.fork(name="child")
    with reopened(durable) as system:
        grandchild = system.agent("child").fork()
        assert reads(system) == (0, 0)
        assert len(grandchild.history()) == MANY + 2


def test_a_child_that_is_born_with_a_prompt_reads_what_it_needs_and_its_parent_reads_nothing(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
    with reopened(durable) as system:
        root = system.root
        child = root.fork("two")
        assert child.reply(timeout=DEADLINE).text == "two / 3"
        assert system._actor(root.uuid).state.phase is Phase.UNLOADED
        assert kinds(child.history()) == ["user", "assistant", "fork", "user", "assistant"]
        assert kinds(root.history()) == ["user", "assistant", "fork"]


def test_the_log_of_an_agent_that_forked_without_it_lacks_no_message(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
    with reopened(durable) as system:
        root = system.root
        first = root.fork()
        assert first.prompt("a").get(timeout=DEADLINE).text == "a / 3"  # it holds its parent's log, as far as it was
        second = root.fork()
        third = root.fork()
        assert kinds(root.history()) == ["user", "assistant", "fork", "fork", "fork"]
        assert third.prompt("c").get(timeout=DEADLINE).text == "c / 3"
        assert [message.id for message in third.history()][:4] == [1, 2, 3, 4]
        assert root.prompt("two").get(timeout=DEADLINE).text == "two / 3"
        fourth = root.fork()  # with its log at hand
        for agent in (root, first, second, third, fourth):
            assert agent.history() == agent.history(all=True)
            assert [message.id for message in agent.history()] == list(range(1, len(agent.history()) + 1))


def test_subscribers_hear_of_a_fork_that_reads_nothing(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
    heard: list[Message] = []
    with reopened(durable) as system:
        system.subscribe(lambda event: heard.append(event) if isinstance(event, Message) else None)
        child = system.root.fork(system="Be brief.")
        root = system.root.uuid
    assert [(message.agent_uuid, message.kind) for message in heard] == [
        (root, "fork"),
        (child.uuid, "fork"),
        (child.uuid, "configure"),
    ]
    assert [message.data for message in heard] == [
        {"child": child.uuid},
        {"parent": root},
        {"system": "Be brief."},
    ]


def test_a_turn_that_was_cut_off_forks_unread_and_is_resumed_as_ever(durable: str) -> None:
    with closing(open_store(durable)) as store:
        with open_on(Kept(store), ScriptedProvider(echo)) as system:
            root = system.root.uuid
        store.write(lambda tx: write_log(tx, says(root, 1, content="asked")))
        store.write(lambda tx: tx.run("set_turn", uuid=root, turn=1))
    with reopened(durable) as system:
        child = system.root.fork()
        assert reads(system) == (0, 0)
        assert system.root.state == "interrupted"
        assert child.state == "idle"
        assert system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "asked / 1"
        assert child.prompt("mine").get(timeout=DEADLINE).text == "mine / 1"
        assert kinds(system.root.history()) == ["user", "fork", "assistant"]


class Kept:
    """A store that stays open when the system on it is closed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """Leave it open."""


def test_a_stopped_agent_refuses_to_fork_read_or_not(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.fork(name="child")
    with reopened(durable) as system:
        child = system.agent("child")
        child.signal(Signal.STOP)
        with pytest.raises(AgentStopped):
            child.fork(timeout=DEADLINE)
        child.signal(Signal.CONT)
        assert child.fork(timeout=DEADLINE).record.parent_uuid == child.uuid
        assert reads(system) == (0, 0)


def test_a_fork_that_a_name_forbids_changes_nothing_and_the_next_one_works(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.fork(name="taken")
    with reopened(durable) as system:
        with pytest.raises(Exception, match="taken"):
            system.root.fork(name="taken", timeout=DEADLINE)
        assert system.root.fork(timeout=DEADLINE).record.fork_message_id == 1
        assert reads(system) == (0, 0)


@pytest.mark.slow("takes a tenth of a second")
def test_forks_and_prompts_at_once_after_a_start_keep_every_log_whole(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
    with reopened(durable) as system:
        root = system.root
        asked: list[Future[Any]] = []
        for number in range(10):
            asked += [root.aio.fork(), root.aio.prompt(f"p{number}"), root.aio.fork(f"c{number}"), root.aio.mark()]
        answers = [each.get(timeout=DEADLINE) for each in asked]
        children = [answer.sync for answer in answers if isinstance(answer, AsyncAgentRef)]
        assert len(children) == 20
        for child in (root, *children):
            whole = child.history(all=True)
            assert [message.id for message in whole] == list(range(1, len(whole) + 1))
            assert child.history() == whole


def test_the_pages_of_a_start_read_no_log(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.fork(name="child")
        lengthen(system, system.root)
    with reopened(durable) as system:
        child = system.agent("child")
        assert (len(system.agents()), child.state, system._settings_at_hand(child.uuid)) == (2, "idle", None)
        assert Scrollback(system._store, system.root.uuid).latest(10)[-1].id == MANY + 1
        system.statistics()
        child.ranges()
        assert reads(system) == (0, 0)


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_that_has_cleared_reads_only_what_came_since(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.configure(system="Be brief.")
        child = system.root.fork(name="child")
        lengthen(system, child)
    with open_echo(durable) as system:
        child = system.agent("child")
        child.clear()
        child.prompt("a").get(timeout=DEADLINE)
    with reopened(durable) as system:
        child = system.agent("child")
        assert child.prompt("b").get(timeout=DEADLINE).text == "b / 3"
        assert reads(system) == (1, 3)
        assert child.context().settings == {"system": "Be brief."}
        assert len(child.history(all=True)) == 2 + MANY + 2 + 4
        assert (child.context().inherited, child.context().own) == (0, 5)
