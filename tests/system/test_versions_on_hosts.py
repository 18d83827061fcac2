"""Programs of two versions on one server: who does not know the tables any more gives its agents away, or refuses."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from ikigai_actors import ActorSystem, FunctionProvider
from ikigai_actors.agent.subscriptions import Event, StoreTrouble
from ikigai_actors.errors import ProgramOutdated, StoreUnusable, SystemClosed
from ikigai_actors.reach.following import commits_of
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store.migrations import Migration, newest
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.system.remote.client import Client
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually, sql

NOW = newest()

STEP = Migration(NOW + 1, "CREATE TABLE teas (name TEXT PRIMARY KEY);", NOW)
"""A step that hosts of today live on with."""


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.thorough("two hosts; every run has those of tests/store/test_hosts_of_versions.py")
@pytest.mark.slow("drains a real host")
def test_who_does_not_know_the_tables_any_more_leaves_and_the_newer_host_answers(
    new_postgres: NewDatabase, opened: ExitStack
) -> None:
    url, heard = new_postgres(), list[Event]()

    def start(name: str, *steps: Migration) -> ActorSystem:
        provider, parts = FunctionProvider(lambda request: f"{name} answers", "code"), replace(SYSTEM_PLATFORM)
        system = ActorSystem.open(
            url, provider, join=True, name=name, lease=30.0, balance=None, parts=replace(parts, migrations=steps)
        )
        opened.callback(system.close)
        return system

    old = start("old")
    agents = [old.root.fork(name=f"agent-{number}") for number in range(3)]
    attached = opened.enter_context(ActorSystem.attach(url))
    attached.subscribe(heard.append, only=(StoreTrouble,))
    new = start("new", STEP)
    assert agents[0].prompt("hello").get(timeout=DEADLINE).text == "old answers"  # it lives on beside the newer one
    assert attached.agent("agent-1").prompt("hello").get(timeout=DEADLINE).text == "old answers"
    with Client.open(url) as client, commits_of(client) as feed:
        assert feed.news().hosts

        new._store.write(lambda tx: tx.run("set_schema_version", version=NOW + 1, least=NOW + 1))

        with pytest.raises(ProgramOutdated):
            feed.news()
    eventually(lambda: [event.final for event in heard if isinstance(event, StoreTrouble)] == [True], "that it refuses")
    with pytest.raises(
        SystemClosed, match=f"needs an ikigai that knows version {NOW + 1}, .* {NOW}: upgrade"
    ) as raised:
        attached.agents()
    assert isinstance(raised.value.__cause__, ProgramOutdated)
    with pytest.raises(StoreUnusable):
        ActorSystem.attach(url)
    eventually(lambda: old._failure is not None and old._closed, "the end of the older host")
    assert isinstance(old._failure, ProgramOutdated)
    assert {host.name for host in new.hosts() if host.shards} == {"new"}
    for agent in agents:
        here = new.agent(agent.uuid)
        assert here.prompt("and now?").get(timeout=DEADLINE).text == "new answers"
        assert [message.content for message in here.history() if message.kind == "error"] == []
    [[steps]] = new._store.read(lambda tx: sql(tx, "SELECT version FROM schema_version"))
    assert steps == NOW + 1
    assert check(new._store) == []
