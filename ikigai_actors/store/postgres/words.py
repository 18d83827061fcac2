"""The index of words on a PostgreSQL server: a ``tsvector`` of each message, and a GIN index."""

from collections.abc import Mapping, Sequence

from ikigai_actors.store.base import Row
from ikigai_actors.store.word_index import INDEX, LONGEST_WORD, MARKS, RunForEach, RunStatement, WordIndex

_MOST = 250_000
"""The most characters of a message that are indexed. A longer message is always a candidate, since a ``tsvector`` ends
at 1 MB."""

_MAKE = (
    f"CREATE TABLE {MARKS} (agent_uuid TEXT PRIMARY KEY, upto BIGINT NOT NULL)",
    f"CREATE TABLE {INDEX} (agent_uuid TEXT, id BIGINT, words TSVECTOR, PRIMARY KEY (agent_uuid, id))",
    f"CREATE INDEX {INDEX}_words ON {INDEX} USING gin (words) WITH (fastupdate = off)",
    f"CREATE INDEX {INDEX}_many ON {INDEX} (agent_uuid) WHERE words IS NULL",
)
_MARK = f"""
INSERT INTO {MARKS} AS s (agent_uuid, upto) VALUES (%s, %s)
    ON CONFLICT (agent_uuid) DO UPDATE SET upto = GREATEST(s.upto, excluded.upto)
"""
_ADD = f"""
INSERT INTO {INDEX} (agent_uuid, id, words) VALUES (%s, %s, array_to_tsvector(%s::text[])) ON CONFLICT DO NOTHING
"""
_SEEN = f"SELECT agent_uuid, upto FROM {MARKS} WHERE agent_uuid = ANY(%s)"
_WITH = f"""
SELECT m.agent_uuid, m.id, m.kind, m.content
  FROM (SELECT agent_uuid, id FROM {INDEX} WHERE words @@ %s::tsquery
        UNION ALL SELECT agent_uuid, id FROM {INDEX} WHERE words IS NULL) w
  JOIN messages m ON m.agent_uuid = w.agent_uuid AND m.id = w.id
 WHERE w.agent_uuid = ANY(%s) ORDER BY m.created_at DESC, m.agent_uuid, m.id DESC LIMIT %s
"""
_IS_THERE = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = %s"


class PostgresWords(WordIndex):
    """The index of words of a PostgreSQL database, used in one transaction."""

    def __init__(self, run: RunStatement, run_many: RunForEach) -> None:
        self._run, self._run_many = run, run_many

    def is_there(self) -> bool:
        return bool(self._run(_IS_THERE, (MARKS,)))

    def make(self) -> None:
        for statement in _MAKE:
            self._run(statement, ())

    def drop(self) -> None:
        self._run(f"DROP TABLE IF EXISTS {INDEX}, {MARKS}", ())

    def seen(self, agents: Sequence[str]) -> dict[str, int]:
        return dict(self._run(_SEEN, (list(agents),)))

    def add(self, agent: str, upto: int, words: Mapping[int, Sequence[str]]) -> None:
        fit = {place: list(each) if sum(map(len, each)) <= _MOST else None for place, each in words.items()}
        self._run_many(_ADD, [(agent, place, each) for place, each in fit.items()])
        self._run(_MARK, (agent, upto))

    def messages_with(self, word: str, agents: Sequence[str], most: int) -> list[Row]:
        return self._run(_WITH, (f"'{word[:LONGEST_WORD]}':*", list(agents), most))
