"""Hosts whose programs know different versions of the schema: who joins, who migrates, who must leave."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest
from psycopg.conninfo import conninfo_to_dict

from ikigai_actors.errors import Fenced, IkigaiError, ProgramOutdated, SchemaInUse, StoreUnavailable
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.hosts.host import Host
from ikigai_actors.store.migrations import Migration, newest, schema_version
from ikigai_actors.store.queries import split
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, eventually, sql, tables
from tests.kit.hosts import Hosts
from tests.kit.network import with_settings

LONG = 600.0
"""Seconds of a lease that no test waits out."""

NOW = newest()

ADDS = Migration(
    NOW + 1, "ALTER TABLE hosts ADD COLUMN zone TEXT NOT NULL DEFAULT ''; CREATE TABLE teas (name TEXT);", NOW
)
"""A step that hosts of today live on with."""

TAKES_AWAY = Migration(NOW + 2, "DROP TABLE teas;", NOW + 1)
"""A step after which a program must know the one before it."""


def living(store: Store) -> list[tuple[str, int]]:
    """The names of the hosts that live, each with the version that its program knows."""
    rows = store.read(lambda tx: sql(tx, "SELECT name, schema FROM hosts WHERE ended_at IS NULL ORDER BY epoch"))
    return [(str(name), int(schema)) for name, schema in rows]


@pytest.fixture
def url(new_postgres: NewDatabase) -> str:
    """A database with the schema of today."""
    return new_postgres()


def test_a_newer_host_migrates_beside_a_living_older_one_which_may_also_come_back(url: str, take: Hosts) -> None:
    old = take(url, lease=LONG, name="old")
    ends: list[IkigaiError] = []
    old.on_outdated = ends.append
    take(url, lease=LONG, name="new", migrations=[ADDS])
    with closing(open_store(url)) as store:
        assert "teas" in tables(store)
        assert living(store) == [("old", NOW), ("new", NOW + 1)]
        old.renew()
        old.claim()
        take(url, lease=LONG, name="old")  # as after a kill, or a roll back
        assert living(store) == [("new", NOW + 1), ("old", NOW)]
        assert schema_version(store) == NOW + 1
    assert ends == []
    with pytest.raises(Fenced):
        old.renew()


@pytest.mark.sample(1, "steps")
@pytest.mark.parametrize("missing", [[TAKES_AWAY], [ADDS, TAKES_AWAY]])
def test_a_step_that_a_living_host_does_not_know_is_refused_and_names_it(
    url: str, take: Hosts, missing: Sequence[Migration]
) -> None:
    old = take(url, lease=LONG, name="old")
    if ADDS not in missing:
        take(url, lease=LONG, name="between", migrations=[ADDS])
    with closing(open_store(url)) as store:
        before = living(store), schema_version(store), tables(store)
        with pytest.raises(SchemaInUse, match=r"old on .*, pid \d+, since.*End each of them") as refused:
            take(url, lease=LONG, name="new", migrations=[ADDS, TAKES_AWAY])
        assert [str(name).split(" on ")[0] for name in refused.value.hosts] == ["host old"]
        assert before == (living(store), schema_version(store), tables(store))
        old.release()
        take(url, lease=LONG, name="new", migrations=[ADDS, TAKES_AWAY])
        assert schema_version(store) == NOW + 2
        assert "teas" not in tables(store)


def test_a_newer_host_takes_the_place_of_an_older_one_of_its_name_though_its_lease_runs(url: str, take: Hosts) -> None:
    old = take(url, lease=LONG, name="one")
    take(url, lease=LONG, name="one", migrations=[ADDS, TAKES_AWAY])  # as after a kill
    with closing(open_store(url)) as store:
        assert (living(store), schema_version(store)) == ([("one", NOW + 2)], NOW + 2)
    with pytest.raises(Fenced):
        old.renew()


STATEMENTS = split(ADDS.script)


@pytest.mark.thorough("a host ends at each statement of a step")
@pytest.mark.parametrize("death", range(len(STATEMENTS) + 1))
def test_a_newer_host_that_dies_at_a_statement_of_a_step_leaves_the_older_tables(
    url: str, take: Hosts, death: int
) -> None:
    old = take(url, lease=LONG, name="old")
    deadly = [*STATEMENTS[:death], "SELECT pg_terminate_backend(pg_backend_pid())", *STATEMENTS[death:]]
    with closing(open_store(url)) as store:
        before = living(store), schema_version(store), tables(store)
        with pytest.raises(StoreUnavailable):
            take(url, lease=LONG, name="new", migrations=[ADDS._replace(script=";\n".join(deadly) + ";")])
        assert before == (living(store), schema_version(store), tables(store))
        old.renew()
        old.claim()
        take(url, lease=LONG, name="new", migrations=[ADDS])
        assert (living(store), schema_version(store)) == ([("old", NOW), ("new", NOW + 1)], NOW + 1)
        assert "teas" in tables(store)


@pytest.mark.thorough("a second play of two versions")
def test_who_shares_with_nobody_is_not_migrated_over_and_is_named(url: str, take: Hosts) -> None:
    take(url, lease=LONG)
    with pytest.raises(SchemaInUse, match=r"host .*, pid \d+, since"):
        take(url, lease=LONG, migrations=[ADDS, TAKES_AWAY])


@pytest.mark.thorough("a second play of two versions")
def test_an_older_host_whose_lease_has_run_out_is_ended_before_what_it_uses_goes(url: str, take: Hosts) -> None:
    old = take(url, lease=LONG, name="old")
    with closing(open_store(url)) as store:
        store.write(lambda tx: sql(tx, "UPDATE hosts SET lease_until = 1"))
        take(url, lease=LONG, name="adds", migrations=[ADDS])
        old.renew()  # what was only added does it no harm, and it goes on
        store.write(lambda tx: sql(tx, "UPDATE hosts SET lease_until = 1 WHERE name = 'old'"))
        take(url, lease=LONG, name="new", migrations=[ADDS, TAKES_AWAY])
        assert living(store) == [("adds", NOW + 1), ("new", NOW + 2)]
    with pytest.raises(Fenced):
        old.renew()


def test_a_host_that_does_not_know_the_schema_any_more_says_so_once_and_none_like_it_joins(
    url: str, take: Hosts
) -> None:
    old = take(url, lease=LONG, name="old")
    ends: list[IkigaiError] = []
    old.on_outdated = ends.append
    old.renew()
    assert ends == []
    with closing(open_store(url)) as store:
        store.write(lambda tx: tx.run("set_schema_version", version=NOW + 1, least=NOW + 1))
    old.renew()
    old.renew()
    assert [type(end) for end in ends] == [ProgramOutdated]
    assert f"knows version {NOW + 1}, this ikigai knows {NOW}" in str(ends[0])
    with pytest.raises(ProgramOutdated):
        take(url, lease=LONG, name="another")


def test_who_waits_for_a_long_reader_to_migrate_keeps_nobody_else_waiting(
    url: str, take: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    old = take(with_settings(url, options=f"{conninfo_to_dict(url)['options']} -cstatement_timeout=5000"), name="old")
    with ThreadPoolExecutor(1) as threads, closing(open_store(url)) as reader:

        def reads(tx: Transaction) -> Future[Host]:
            before = len(sql(tx, "SELECT * FROM hosts"))
            joins = threads.submit(take, url, name="new", migrations=[ADDS])
            eventually(lambda: "longer transaction lets them go" in caplog.text, "a first try that fails")
            for _ in range(3):
                old.renew()  # a table that somebody waits to change could not be written, or read
                old.claim()
            assert len(sql(tx, "SELECT * FROM hosts")) == before
            assert not joins.done()
            return joins

        assert reader.read(reads).result(DEADLINE).name == "new"
        assert living(reader) == [("old", NOW), ("new", NOW + 1)]


def test_a_file_that_a_newer_program_has_added_to_is_opened_by_an_older_one(
    new_sqlite: NewDatabase, take: Hosts
) -> None:
    file = new_sqlite()
    for migrations in ([], [ADDS], [], [ADDS, TAKES_AWAY]):
        take(file, migrations=migrations).release()
    with pytest.raises(ProgramOutdated):
        take(file)
    with closing(open_store(file)) as store:
        assert schema_version(store) == NOW + 2
