"""Hints: the agents that a commit concerns, as those are told who follow hosts."""

import base64
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.mail.mail import Send
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.base import Hint, Watch
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.postgres.hints import CLIENTS, HOSTS, MOST_BYTES, Channels, together
from ikigai_actors.store.unit import Unit, write_alone
from supervisors.signals import Signal
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE
from tests.kit.journals import Answers
from tests.kit.trees import HOST, append, fork, plant


@pytest.fixture
def server_store(new_postgres: NewDatabase) -> Iterator[Store]:
    """A store on PostgreSQL with agents "root", "a" and "b"."""
    with closing(open_store(new_postgres())) as store:
        plant(store, a="root", b="root")
        yield store


@pytest.fixture
def watch(server_store: Store) -> Iterator[Watch]:
    """A watch that listens."""
    watch = server_store.watch(hosts=True)
    assert watch.wait(DEADLINE)
    assert watch.heard() == Hint()  # what came before it listened, nobody told
    yield watch
    watch.close()
    assert not watch.wait()


CHANNELS = Channels("a secret")


def named(*payloads: str) -> frozenset[str] | None:
    """The agents that payloads name together."""
    hints = [CHANNELS.agents(payload) for payload in payloads]
    return together([agents for agents in hints if agents is not None])


def test_a_payload_names_agents_and_several_name_them_together() -> None:
    assert named(CHANNELS.payload({"a", "b"}), CHANNELS.payload({"b", "c"})) == frozenset({"a", "b", "c"})
    assert together([]) == frozenset()


@pytest.mark.parametrize("agents", [None, (), {f"{number:032x}" for number in range(MOST_BYTES // 33 + 1)}])
def test_any_agent_may_be_meant_where_a_payload_names_nobody(agents: set[str] | None) -> None:
    assert CHANNELS.agents(CHANNELS.payload(agents)) == frozenset()
    assert named(CHANNELS.payload({"a"}), CHANNELS.payload(agents)) is None


def test_as_many_agents_as_fit_are_named() -> None:
    agents = frozenset(f"{number:032x}" for number in range(MOST_BYTES // 33))
    assert named(payload := CHANNELS.payload(agents)) == agents
    assert len(payload) < 8_000  # what the server takes


def test_a_payload_shows_no_agent_and_no_two_are_alike() -> None:
    agent = f"{7:032x}"
    first, second = CHANNELS.payload({agent}), CHANNELS.payload({agent})
    assert first != second
    assert not [
        payload for payload in (first, second) if agent in payload or agent.encode() in base64.b64decode(payload)
    ]


@pytest.mark.parametrize("change", ["", "x", "\u00e9", "a a", "{}A", "A{}", "{}{}"])
def test_what_another_has_written_names_nobody_and_does_not_count(change: str) -> None:
    sealed = CHANNELS.payload({"a"})
    assert CHANNELS.agents(change.format(sealed, sealed)) is None
    assert Channels("another secret").agents(sealed) is None
    names = {each.name(audience) for each in (CHANNELS, Channels("another secret")) for audience in (CLIENTS, HOSTS)}
    assert len(names) == 4
    assert all(re.fullmatch(r"ikigai_[0-9a-f]{32}", name) for name in names)


@pytest.mark.sample(2, "units")
@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (append("a", 1), frozenset({"a"})),
        (fork("a", "child"), frozenset({"a", "child"})),
        (Send("a", "b", "tea", 1), frozenset({"a", "b"})),
        (SendSignal("a", Signal.KILL, 1), None),
    ],
    ids=["append", "fork", "mail", "kill"],
)
def test_what_a_journal_commits_names_the_agents_that_changed(
    server_store: Store, watch: Watch, unit: Unit, expected: frozenset[str] | None
) -> None:
    journal = Journal(server_store, HOST, SystemClock())
    journal.submit(unit, Answers().to("one"))
    journal.commit_pending()
    assert watch.wait(DEADLINE)
    assert watch.heard().agents == expected
    journal.close()


def test_what_a_client_commits_names_the_agents_that_changed(server_store: Store, watch: Watch) -> None:
    write_alone(server_store, Send("b", None, "tea", 1))
    assert watch.wait(DEADLINE)
    assert watch.heard() == Hint(frozenset({"b"}), frozenset({"b"}))
    assert watch.heard() == Hint(frozenset(), frozenset())


def test_a_host_is_asked_for_agents_where_a_host_rings_for_hosts_too(server_store: Store, watch: Watch) -> None:
    server_store.ring({"a"})
    assert watch.wait(DEADLINE)
    assert watch.heard() == Hint(frozenset({"a"}), frozenset())
    server_store.ring({"b"}, hosts=True)
    while not (heard := watch.heard()).for_hosts:
        assert watch.wait(DEADLINE)
    assert heard == Hint(frozenset({"b"}), frozenset({"b"}))
