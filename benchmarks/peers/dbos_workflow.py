"""DBOS: a workflow whose steps say the messages. ``fork_workflow`` copies the results of the steps before a given one.

The fork is put on a queue that nobody serves here, so nothing runs beside what is measured. A workflow of many steps is
made in bulk: the row of its first step is copied.
"""

import sqlite3
from functools import partial
from itertools import count as counting
from pathlib import Path
from typing import Any
from uuid import uuid4

from dbos import DBOS, DBOSConfig, SetWorkflowID

from benchmarks.population import PROMPT, REPLY

QUEUE = "benchmark"


@DBOS.step()
def say(place: int) -> str:
    """One message."""
    return (PROMPT if place % 2 else REPLY).format(place)


@DBOS.workflow()
def converse(count: int) -> int:
    """So many messages, one after the other."""
    for place in range(1, count + 1):
        say(place)
    return count


@DBOS.step()
def ask(messages: list[str], calls: int) -> str:
    """The reply of a model to a conversation: a call, or the end."""
    return "Done." if len(messages) // 2 + 1 >= calls else f"look({len(messages)})"


@DBOS.step()
def look(result: str) -> str:
    """A tool."""
    return result


@DBOS.workflow()
def take_turn(prompt: str, result: str, calls: int) -> int:
    """One turn: the model and the tool, until the model makes no call."""
    messages = [prompt]
    while (reply := ask(messages, calls)) != "Done.":
        messages += [reply, look(result)]
    return len(messages) // 2 + 1


def long_turn(directory: Path, prompt: str, result: str, calls: int) -> None:
    """One turn of this many model calls. Each but the last calls a tool, which returns this result."""
    DBOS(config=_config(f"sqlite:///{directory / 'dbos.db'}", "dbos"))
    DBOS.launch()
    try:
        assert take_turn(prompt, result, calls) == calls
    finally:
        DBOS.destroy()


class Workflow:
    """A workflow that has taken so many steps."""

    def __init__(self, directory: Path, url: str, count: int) -> None:
        self._count, self._numbers = count, counting()
        self._connect = partial(_connect, directory / "dbos.db", url)
        where = url.replace("postgresql://", "postgresql+psycopg://") if url else f"sqlite:///{directory / 'dbos.db'}"
        self._schema = f"dbos_{uuid4().hex}"
        DBOS(config=_config(where, self._schema))
        DBOS.listen_queues([])
        DBOS.launch()
        self._id = self._converse(min(count, 1))
        if count > 1:
            self._multiply(count)

    def fork(self) -> None:
        """See `Session.fork`."""
        DBOS.fork_workflow(self._id, self._count + 1, queue_name=QUEUE)

    def rest(self) -> None:
        """Nothing: the fork is another workflow."""

    def append(self, count: int) -> None:
        """See `Session.append`; in another workflow, since this one is over."""
        self._converse(count)

    def read(self) -> int:
        """See `Session.read`."""
        return len(DBOS.list_workflow_steps(self._id))

    def send(self, body: str) -> None:
        """Send one mail to the workflow."""
        DBOS.send(self._id, body, topic="mail")

    def turn(self) -> None:
        """It runs no model."""
        raise NotImplementedError("it runs no model")

    def close(self) -> None:
        """See `Session.close`."""
        DBOS.destroy()

    def _converse(self, count: int) -> str:
        name = f"conversation {next(self._numbers)}"
        with SetWorkflowID(name):
            converse(count)
        return name

    def _multiply(self, count: int) -> None:
        """Make the one step of the workflow so many."""
        connection, mark, schema = self._connect(self._schema)
        try:
            first = connection.execute(
                f"SELECT * FROM {schema}operation_outputs WHERE workflow_uuid = {mark}", (self._id,)
            )
            names, row = [column[0] for column in first.description], first.fetchone()
            place = names.index("function_id")
            rows = [(*row[:place], row[place] + step, *row[place + 1 :]) for step in range(1, count)]
            marks = ", ".join([mark] * len(names))
            sql = f"INSERT INTO {schema}operation_outputs ({', '.join(names)}) VALUES ({marks})"
            connection.cursor().executemany(sql, rows)
            connection.commit()
        finally:
            connection.close()


def _config(url: str, schema: str) -> DBOSConfig:
    return DBOSConfig(
        name="benchmark", system_database_url=url, dbos_system_schema=schema, log_level="ERROR", run_admin_server=False
    )


def _connect(path: Path, url: str, schema: str) -> tuple[Any, str, str]:
    """A connection of the driver, its mark of a parameter, and what stands before the name of a table."""
    if not url:
        return sqlite3.connect(path), "?", ""
    import psycopg

    return psycopg.connect(url), "%s", f"{schema}."
