"""Another process with an SQLite file open: a shell, a database browser, a program that copies the log elsewhere."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PROGRAM = """
import fcntl, json, sqlite3, sys
file = sys.argv[1]
connection = sqlite3.connect(file, isolation_level=None, timeout=0)
shared = open(file + '-shm', 'r+b')
for line in sys.stdin:
    statement = json.loads(line)
    try:
        if statement == 'move':
            fcntl.lockf(shared, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 121)
            found = []
        elif statement == 'end move':
            fcntl.lockf(shared, fcntl.LOCK_UN, 1, 121)
            found = []
        else:
            found = connection.execute(statement).fetchall()
    except (sqlite3.Error, OSError) as error:
        found = repr(error)
    print(json.dumps(found), flush=True)
"""
"""Runs what it is given, one statement a line. Byte 121 of the shared memory is the lock of who moves the log."""


class SQLiteProcess:
    """One connection to a file, in a process of its own. It waits for no lock."""

    def __init__(self, file: Path) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-I", "-S", "-c", _PROGRAM, str(file)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, statement: str) -> Any:
        """Run a statement; return its rows, or the text of the error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def begins_to_move(self) -> None:
        """Be in the middle of a checkpoint from now on."""
        assert self.run("move") == []

    def ends_moving(self) -> None:
        """Be in the middle of none any more."""
        assert self.run("end move") == []

    def end(self) -> None:
        """End the process, which closes the file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def sqlite_process(file: Path) -> Iterator[SQLiteProcess]:
    """Another process that has a file open, for the length of a block."""
    process = SQLiteProcess(file)
    try:
        yield process
    finally:
        process.end()
