"""The index of words in an SQLite file: FTS5, without the texts.

The number of a row is made of the agent's number and the message's position, so the index needs no table but the marks.
SQLite 3.40 cannot delete rows from an index without texts, so the index is dropped as a whole.
"""

import json
from collections.abc import Mapping, Sequence

from ikigai_actors.store.base import Row
from ikigai_actors.store.word_index import INDEX, LONGEST_WORD, MARKS, RunForEach, RunStatement, WordIndex

_POSITIONS = 2**32
"""A number above all positions of a log."""

# The words come apart already: all letters beyond ASCII count as parts of them, as here.
_OPTIONS = "content = '', detail = none, columnsize = 0, tokenize = \"ascii tokenchars '_'\""
_MAKE = (
    f"CREATE TABLE {MARKS} (number INTEGER PRIMARY KEY, agent_uuid TEXT NOT NULL UNIQUE, upto INTEGER NOT NULL)",
    f"CREATE VIRTUAL TABLE {INDEX} USING fts5(words, {_OPTIONS})",
)
_MARK = f"""
INSERT INTO {MARKS} (agent_uuid, upto) VALUES (?, ?)
    ON CONFLICT (agent_uuid) DO UPDATE SET upto = excluded.upto RETURNING number
"""
_SEEN = f"SELECT agent_uuid, upto FROM {MARKS} WHERE agent_uuid IN (SELECT value FROM json_each(?))"
_WITH = f"""
SELECT m.agent_uuid, m.id, m.kind, m.content
  FROM {INDEX} w JOIN {MARKS} s ON s.number = w.rowid / {_POSITIONS}
  JOIN messages m ON m.agent_uuid = s.agent_uuid AND m.id = w.rowid % {_POSITIONS}
 WHERE {INDEX} MATCH ? AND s.agent_uuid IN (SELECT value FROM json_each(?))
 ORDER BY m.created_at DESC, m.agent_uuid, m.id DESC LIMIT ?
"""


class SQLiteWords(WordIndex):
    """The index of words of an SQLite file, used in one transaction."""

    def __init__(self, run: RunStatement, run_many: RunForEach) -> None:
        self._run, self._run_many = run, run_many

    def is_there(self) -> bool:
        return bool(self._run("SELECT 1 FROM sqlite_master WHERE name = ?", (MARKS,)))

    def make(self) -> None:
        for statement in _MAKE:
            self._run(statement, ())

    def drop(self) -> None:
        for table in (INDEX, MARKS):
            self._run(f"DROP TABLE IF EXISTS {table}", ())

    def seen(self, agents: Sequence[str]) -> dict[str, int]:
        return dict(self._run(_SEEN, (json.dumps(list(agents)),)))

    def add(self, agent: str, upto: int, words: Mapping[int, Sequence[str]]) -> None:
        [(number,)] = self._run(_MARK, (agent, upto))
        rows = [(number * _POSITIONS + position, " ".join(each)) for position, each in words.items()]
        self._run_many(f"INSERT INTO {INDEX} (rowid, words) VALUES (?, ?)", rows)

    def messages_with(self, word: str, agents: Sequence[str], most: int) -> list[Row]:
        return self._run(_WITH, (f'"{word[:LONGEST_WORD]}"*', json.dumps(list(agents)), most))
