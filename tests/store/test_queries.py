"""SQL is written once: what becomes of it for each database."""

import re
import sqlite3
from collections.abc import Callable

import psycopg
import pytest

from ikigai_actors.store import Row, Store, Transaction, open_store, queries
from ikigai_actors.store.migrations import ensure_schema, schema_script
from ikigai_actors.store.queries import parse, split, to_postgres, to_sqlite
from tests.conftest import NewDatabase
from tests.kit.databases import sql


def test_parameters_are_written_as_each_driver_wants_them() -> None:
    assert to_sqlite("SELECT :a, :b_2").sql == "SELECT :a, :b_2"
    assert to_postgres("SELECT :a, :b_2").sql == "SELECT %(a)s, %(b_2)s"


def test_casts_literals_and_quoted_names_are_left_alone() -> None:
    text = """SELECT x::text, ':no', 'it''s :no', ":no", '-- no', '%'"""
    assert to_sqlite(text).sql == text
    assert to_postgres(text).sql == text.replace("%", "%%")


def test_per_cent_signs_are_doubled_for_psycopg_alone() -> None:
    assert to_sqlite("SELECT 7 % 3 WHERE x LIKE 'a%'").sql == "SELECT 7 % 3 WHERE x LIKE 'a%'"
    assert to_postgres("SELECT 7 % 3 WHERE x LIKE 'a%'").sql == "SELECT 7 %% 3 WHERE x LIKE 'a%%'"


def test_lists_are_arrays_for_postgresql_and_json_for_sqlite() -> None:
    text = "SELECT 1 WHERE x = ANY(:xs) AND y = any ( :ys ) AND z = :z"
    lite, post = to_sqlite(text), to_postgres(text)
    assert lite.sql == (
        "SELECT 1 WHERE x IN (SELECT value FROM json_each(:xs)) AND y IN (SELECT value FROM json_each(:ys)) AND z = :z"
    )
    assert post.sql == "SELECT 1 WHERE x = ANY(%(xs)s) AND y = ANY(%(ys)s) AND z = %(z)s"
    assert lite.lists == post.lists == {"xs", "ys"}


def test_sqlite_changes_many_agents_in_the_order_in_which_they_lie() -> None:
    text = "UPDATE agents SET turn = 0 WHERE uuid = ANY(:uuids)"
    assert to_sqlite(text).sql == (
        "UPDATE agents SET turn = 0 WHERE rowid IN "
        "(SELECT rowid FROM agents WHERE uuid IN (SELECT value FROM json_each(:uuids)))"
    )
    assert to_postgres(text).sql == "UPDATE agents SET turn = 0 WHERE uuid = ANY(%(uuids)s)"


def test_each_database_has_its_own_key_of_a_row_and_its_own_list_of_values() -> None:
    text = "SELECT json_agg(a.row_key) FROM agents a WHERE row_key = ANY(:keys)"
    assert to_sqlite(text).sql == (
        "SELECT json_group_array(a.rowid) FROM agents a WHERE rowid IN (SELECT value FROM json_each(:keys))"
    )
    assert to_postgres(text).sql == "SELECT json_agg(a.uuid) FROM agents a WHERE uuid = ANY(%(keys)s)"


def test_about_as_many_rows_as_a_table_has_are_known_without_a_count() -> None:
    text = "SELECT about_rows(mail)"
    assert to_sqlite(text).sql == "SELECT (SELECT COALESCE(MAX(rowid), 0) FROM mail)"
    assert "c.oid = 'mail'::regclass" in to_postgres(text).sql


def test_the_lock_is_dropped_for_sqlite_alone() -> None:
    text = "SELECT 1 FROM a ORDER BY uuid\n   FOR NO KEY UPDATE OF a"
    assert to_sqlite(text).sql == "SELECT 1 FROM a ORDER BY uuid"
    assert to_postgres(text).sql == text


def test_comments_are_left_out() -> None:
    assert to_postgres("SELECT 1 -- it's 5 % :x\n, 2 /* :y */").sql == "SELECT 1 \n, 2"


def test_a_script_is_cut_at_its_semicolons_alone() -> None:
    assert split("-- a; b\nSELECT ';'; /* ; */ SELECT 2 -- it's; c\n;;") == ("SELECT ';'", "SELECT 2")
    assert all(re.match("CREATE|INSERT", statement) for statement in split(schema_script()))


def test_names_are_read_with_their_statements() -> None:
    assert parse("-- head\n\n-- name: a\n-- why\nSELECT 1\n\n-- name: b\nSELECT\n 2\n") == {
        "a": "SELECT 1",
        "b": "SELECT\n 2",
    }


def test_columns_are_named_once_and_stand_where_statements_name_them() -> None:
    assert parse("-- columns: c\n-- why\nx,\n y\n\n-- name: a\nSELECT {c} FROM t") == {"a": "SELECT x,\n y FROM t"}
    with pytest.raises(KeyError, match="'d'"):
        parse("-- columns: c\nx\n-- name: a\nSELECT {d} FROM t")


@pytest.mark.parametrize("text", ["-- name: a\nSELECT 1\n-- name: a\nSELECT 2", "-- name: a\n-- name: b\nSELECT 1"])
def test_a_name_twice_or_without_a_statement_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'a'"):
        parse(text)


def test_an_unknown_name_is_named() -> None:
    for look in (queries.query, queries.for_sqlite, queries.for_postgres):
        with pytest.raises(KeyError, match="no_such_query"):
            look("no_such_query")


def test_each_statement_is_translated_once() -> None:
    assert queries.for_sqlite("lock_agents") is queries.for_sqlite("lock_agents")
    assert queries.for_postgres("lock_agents") is queries.for_postgres("lock_agents")


def made(url: str) -> str:
    """The URL, of a database that has the schema."""
    store: Store = open_store(url)
    ensure_schema(store)
    store.close()
    return url


def nothing(statement: str, pattern: str) -> dict[str, None]:
    """Each parameter of a statement, as NULL."""
    return dict.fromkeys(re.findall(pattern, statement))


def complaints(explain: Callable[[str], object], error: type[Exception]) -> dict[str, str]:
    """What a database says about the statements that it does not understand."""
    complaint_by_name = {}
    for name in queries.queries():
        try:
            explain(name)
        except error as complaint:
            complaint_by_name[name] = str(complaint)
    return complaint_by_name


@pytest.mark.slow("takes a tenth of a second")
def test_sqlite_understands_every_statement(new_sqlite: NewDatabase) -> None:
    connection = sqlite3.connect(made(new_sqlite()).removeprefix("sqlite:///"))
    connection.create_function("now_ms", 0, lambda: 0)

    def explain(name: str) -> object:
        statement = queries.for_sqlite(name).sql
        return connection.execute(f"EXPLAIN {statement}", nothing(statement, r":(\w+)")).fetchall()

    assert complaints(explain, sqlite3.Error) == {}
    connection.close()


def test_postgresql_understands_every_statement(new_postgres: NewDatabase) -> None:
    with psycopg.connect(made(new_postgres()), autocommit=True) as connection:

        def explain(name: str) -> object:
            statement = queries.for_postgres(name).sql
            return connection.execute(f"EXPLAIN {statement}".encode(), nothing(statement, r"%\((\w+)\)s")).fetchall()

        assert complaints(explain, psycopg.Error) == {}


def test_sqlite_goes_down_the_tree_by_its_index_from_one_agent_to_the_next(new_sqlite: NewDatabase) -> None:
    """A column on the other side would lend its affinity, and then the whole index would be read for each agent."""
    connection = sqlite3.connect(made(new_sqlite()).removeprefix("sqlite:///"))
    connection.create_function("now_ms", 0, lambda: 0)
    walks = [name for name in queries.queries() if "supervisor_uuid || '' = " in queries.query(name)]
    assert len(walks) >= 8
    plans = {name: queries.for_sqlite(name).sql for name in walks}
    steps = {
        name: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {plan}", nothing(plan, r":(\w+)"))]
        for name, plan in plans.items()
    }
    assert {
        name: plan for name, plan in steps.items() if any("SCAN a USING INDEX agents_children" in step for step in plan)
    } == {}
    connection.close()


FOUND_AT_ONCE = ("changes", "deadlines", "new_prompts", "new_remote_commands")
"""What is looked for whenever another process has committed something: however many agents there are."""


def test_what_other_processes_did_is_found_by_indexes(durable: str) -> None:
    store: Store = open_store(made(durable))
    assert {name: scans for name in FOUND_AT_ONCE if (scans := scans_of(store, name))} == {}
    store.close()


def scans_of(store: Store, name: str) -> list[str]:
    """The steps of a statement that read a whole table."""
    statement = queries.query(name).replace(":since", "5").replace(":host", "'h'")
    if store.location.startswith("postgres"):
        # Of empty tables the planner likes to read all; if an index did not apply it would do so even now.
        plan = store.read(lambda tx: (sql(tx, "SET LOCAL enable_seqscan = off"), sql(tx, f"EXPLAIN {statement}"))[1])
        return [line for (line,) in plan if "Seq Scan" in line]
    steps = [row[3] for row in store.read(lambda tx: sql(tx, f"EXPLAIN QUERY PLAN {statement}"))]
    return [step for step in steps if step.startswith("SCAN") and "USING INDEX" not in step]


def test_agents_are_found_by_the_beginning_of_their_uuid_by_an_index(durable: str) -> None:
    store: Store = open_store(made(durable))
    statement = queries.query("agents_by_prefix")
    for written, value in ((":starts", "'{abcd,abce}'"), (":prefixes", "'{abcd}'"), (":length", "4"), (":most", "5")):
        statement = statement.replace(written, value)
    if store.location.startswith("postgres"):
        plan = store.read(lambda tx: (sql(tx, "SET LOCAL enable_seqscan = off"), sql(tx, f"EXPLAIN {statement}"))[1])
    else:
        statement = statement.replace("json_agg", "json_group_array")
        statement = re.sub(r"= ANY\('{(.*?)}'\)", r"IN (SELECT value FROM json_each('[\"\1\"]'))", statement)
        plan = store.read(lambda tx: sql(tx, f"EXPLAIN QUERY PLAN {statement}"))
    assert "agents_beginning" in str(plan)
    store.close()


CROWD = """
INSERT INTO agents (uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at, ended_at)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
SELECT 'd' || i, 'a', 'a', 1, 'dead', i, i FROM n
UNION ALL SELECT 'l' || i, 'a', 'd' || (i % 50 + 1), 1, 'running', i, NULL FROM n
"""
"""Many children of agent "a" have died, and some of these have living ones: which index is short, the planner knows."""


LOOKS = (
    ("living_in_branch", "agents_(branch|shard|children|newest)"),  # indexes of the living alone
    ("living_in_branches", "agents_(branch|shard|children|newest)"),
    ("living_children", "agents_(children|shard|newest)"),
    ("household", "agents_children"),
    ("branch", "agents_children"),
    ("doomed", "agents_children"),
    ("some_living_below", "agents_children"),
    ("count_living_below", "agents_children"),
    ("those_that_gave_up", "agents_(children|paused)"),
    ("some_children", "agents_children"),
    ("some_children_before", "agents_children"),
    ("latest_used", "agents_newest"),
    ("latest_used", "agents_seen"),
    ("dead_by_name", "agents_dead_name"),
    ("paused_after", "agents_paused"),
    ("turns_that_asked", "agents_awake"),
    ("turns_that_asked_of", "agents_pkey|sqlite_autoindex_agents_1"),
)
"""Statements that concern few agents, and the index that finds them."""


def test_a_look_that_concerns_few_agents_uses_an_index_of_few(durable: str) -> None:
    store: Store = open_store(made(durable))
    root = "INSERT INTO agents (uuid, fork_message_id, status, created_at) VALUES ('a', 0, 'running', 1)"
    store.write(lambda tx: [sql(tx, statement) for statement in (root, CROWD, "ANALYZE agents")])
    plans = [(name, index, plan_of(store, name)) for name, index in LOOKS]
    assert [(name, plan) for name, index, plan in plans if not re.search(index, plan)] == []
    store.close()


def test_timers_of_one_moment_are_found_without_sorting_them(new_sqlite: NewDatabase) -> None:
    """Else each look at those that are next reads all that are due with them."""
    store: Store = open_store(made(new_sqlite()))
    assert "TEMP B-TREE" not in plan_of(store, "next_timers")
    store.close()


def plan_of(store: Store, name: str) -> str:
    """How a statement of the table above would be carried out."""
    is_server = store.location.startswith("postgres")
    translated = queries.for_postgres(name) if is_server else queries.for_sqlite(name)
    statement = re.sub(r"%\((\w+)\)s", r":\1", translated.sql).replace("%%", "%")
    for written, value in (
        (":most", "5"), (":branch", "'a'"), (":uuids", "'{a}'" if is_server else "'[]'"),
        (":uuid", "'a'"), (":name", "'a'"), (":after", "'a'"), (":before", "'a'"),
        (":at", "5"), (":top", "'a'"), (":host", "'h'"), (":born", "5"), (":status", "'a'"),
    ):  # fmt: skip
        statement = statement.replace(written, value)
    if is_server:
        ways = ("seqscan", "hashjoin", "mergejoin") if translated.walks_down else ("seqscan",)
        off = [f"SET LOCAL enable_{way} = off" for way in ways]
        plan = store.read(lambda tx: [sql(tx, step) for step in (*off, f"EXPLAIN {statement}")][-1])
    else:
        plan = store.read(lambda tx: sql(tx, f"EXPLAIN QUERY PLAN {statement}"))
    return str(plan)


MANY = """
INSERT INTO agents (uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at)
SELECT CAST(n AS TEXT), CASE WHEN n > 0 THEN '0' END, CASE WHEN n > 0 THEN '0' END, 0, 'running', 1
  FROM generate_series(0, 2000) n"""


@pytest.mark.parametrize(("name", "top"), [("uuids_below", "1"), ("uuids_below", "0")])
def test_a_walk_reads_no_whole_table_though_an_agent_has_thousands_of_children(
    new_postgres: NewDatabase, name: str, top: str
) -> None:
    store: Store = open_store(made(new_postgres()))
    statement = queries.for_postgres(name).sql.replace("%(uuid)s", f"'{top}'")
    store.write(lambda tx: (sql(tx, MANY), sql(tx, "ANALYZE agents")))
    plan = store.read(lambda tx: sql(tx, f"EXPLAIN {statement}"))
    assert "Seq Scan" not in str(plan)
    store.close()


@pytest.mark.parametrize(("above", "top"), [("CAST(n - 1 AS TEXT)", "1"), ("'0'", "0")], ids=["deep", "wide"])
def test_a_walk_down_reads_no_whole_table_however_deep_or_wide_it_is(
    new_postgres: NewDatabase, above: str, top: str
) -> None:
    """Of a small table the planner would read all for each level."""
    store: Store = open_store(made(new_postgres()))
    crowd = MANY.replace("THEN '0' END", f"THEN {above} END").replace("2000", "300")
    store.write(lambda tx: (sql(tx, crowd), sql(tx, "ANALYZE agents")))
    for query in ("doomed", "branch", "count_living_below", "descendants", "descent", "belonging"):

        def scans(tx: Transaction, query: str = query) -> list[Row]:
            scanned = "SELECT pg_stat_get_xact_numscans('agents'::regclass), current_setting('enable_seqscan')"
            before = sql(tx, scanned)
            assert tx.run(query, uuid=top)
            return [*before, *sql(tx, scanned)]

        assert store.read(scans) == [(0, "on"), (0, "on")], query
    store.close()


def test_the_statements_that_walk_down_the_tree_are_known_by_their_text() -> None:
    walks = {name for name in queries.queries() if queries.for_postgres(name).walks_down}
    assert walks == {
        "belonging", "branch", "count_below", "count_living_below", "descendants", "descent", "doomed", "some_below",
        "some_living_below", "spent_below", "those_that_gave_up", "uuids_below", "written_since",
    }  # fmt: skip


def test_what_gives_rows_is_told_from_the_text_as_the_server_tells_it(
    new_postgres: NewDatabase,
) -> None:
    """A statement of which this is wrongly denied would give nothing: nobody waits for its rows."""
    with psycopg.connect(new_postgres(), autocommit=True) as connection:
        server = connection.pgconn
        for number, name in enumerate(queries.queries()):
            statement = queries.for_postgres(name)
            text = statement.sql
            for place, parameter in enumerate(dict.fromkeys(re.findall(r"%\(\w+\)s", text)), 1):
                text = text.replace(parameter, f"${place}")
            prepared = f"s{number}".encode()
            made = server.prepare(prepared, text.replace("%%", "%").encode())
            assert made.status == psycopg.pq.ExecStatus.COMMAND_OK, (name, made.error_message)
            gives = server.describe_prepared(prepared).nfields > 0
            assert statement.gives_rows == gives, name
