"""What schema.sql repeats of the code: the defaults of an agent's row, and the words that columns may hold."""

import re
import sqlite3
from dataclasses import MISSING, fields

import pytest

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.arrivals.arrivals import DEAD, FILTERED, HELD, TAKEN
from ikigai_actors.records.batches import MEMBER_STATES
from ikigai_actors.records.budgets.budget import UNITS
from ikigai_actors.records.mail import mail
from ikigai_actors.records.messages.question_terms import DEFAULT, ESCALATE, REMIND
from ikigai_actors.records.questions.asked import (
    ANSWERED,
    APPROVE,
    APPROVED,
    ASK,
    CONNECT,
    DECLINED,
    DENIED,
    EXPIRED,
    VOID,
)  # fmt: skip
from ikigai_actors.store.migrations import schema_script
from ikigai_actors.store.transaction import COLUMNS
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.rules.rule import Scope
from ikigai_actors.tools.trees.tree import OVERLAY, WORKTREE
from supervisors.causes import Cause
from supervisors.children import RestartType
from supervisors.orphans import OrphanPolicy
from supervisors.signals import Signal, Status
from supervisors.strategies import Strategy
from supervisors.supervisor import Supervisor

WORDS = {
    "became": {TAKEN, FILTERED, HELD, DEAD},
    "decision": set(Policy),
    "exit_cause": set(Cause),
    "fires_as": {mail.MAIL, mail.NOTICE, mail.PROMPT},
    "forked_as": {OVERLAY, WORKTREE},
    "how": {APPROVED, DENIED, ANSWERED, DECLINED, EXPIRED, VOID},
    "kind": {mail.MAIL, mail.EXIT, mail.NOTICE, mail.PROMPT},
    "next": {REMIND, ESCALATE, DEFAULT},
    "on_orphan": set(OrphanPolicy),
    "restart": set(RestartType),
    "scope": set(Scope),
    "signal": set(Signal),
    "state": MEMBER_STATES,
    "status": set(Status),
    "strategy": set(Strategy),
    "unit": set(UNITS.values()),
}
"""What a column may hold, by its name, as the code has it."""

SCRIPT = re.sub("--.*", "", schema_script())


def defaults() -> dict[str, object]:
    """The default of each column of an agent's row, None when it has none."""
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(SCRIPT)
        rows = connection.execute("SELECT name, dflt_value FROM pragma_table_info('agents')").fetchall()
        values = {name: connection.execute(f"SELECT {text or 'NULL'}").fetchone()[0] for name, text in rows}
    connection.close()
    return values


@pytest.mark.parametrize("table", COLUMNS)
def test_rows_that_come_in_bulk_have_the_columns_of_their_table(table: str) -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(SCRIPT)
        columns = connection.execute(f"SELECT name, type FROM pragma_table_info('{table}') ORDER BY cid").fetchall()
    connection.close()
    types = {"TEXT": "text", "BIGINT": "int8", "BYTEA": "bytea"}
    assert [*COLUMNS[table].items()] == [(name, types[kind]) for name, kind in columns]


def test_a_new_row_of_an_agent_has_the_defaults_of_its_record() -> None:
    values = {field.name: field.default for field in fields(AgentRecord) if field.default is not MISSING}
    known = {
        name: value for name, value in values.items() if name not in ("waits_for", "awaits", "asks")
    }  # of other tables
    assert known == {name: value for name, value in defaults().items() if name in known}


def test_a_new_row_of_an_agent_allows_the_restarts_of_a_new_supervisor() -> None:
    new, row = Supervisor(), defaults()
    assert (new.strategy, new.intensity, new.period) == (row["strategy"], row["intensity"], row["period"])


@pytest.mark.parametrize("column", WORDS)
def test_a_column_holds_the_words_that_the_code_knows(column: str) -> None:
    checks = re.findall(rf"CHECK \({column} IN \(([^)]*)\)", SCRIPT)
    of_questions = [{APPROVE, ASK, CONNECT}] if column == "kind" else []  # behind the kinds of mail
    expected = [WORDS[column], *of_questions]
    assert [set(re.findall(r"'([^']*)'", check)) for check in checks] == expected


def test_no_column_with_words_of_its_own_is_forgotten() -> None:
    assert set(re.findall(r"CHECK \((\w+) IN \(\s*'", SCRIPT)) == set(WORDS)
