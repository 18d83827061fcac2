"""The index of words: it finds what reading all messages finds, on each database, and may be dropped at any time."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.log.words import (
    FoundMessage,
    Saying,
    drop_word_index,
    find_in_history,
    find_words,
    index_words,
    ranked_by_words,
)
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.copy import copy_database
from ikigai_actors.store.memory import open_with_tables
from ikigai_actors.store.sqlite.backup import back_up
from ikigai_actors.store.unit import write_alone
from ikigai_actors.store.word_index import indexed_words
from tests.conftest import NewDatabase
from tests.kit.databases import bury
from tests.kit.trees import HOST, plant, says

WORDS = ("mast", "MAST", "masts", "mastiff", "topmast", "m_st", "keel_2", "größe", "30m", "30", "船", "帆船", "ẞ", "İz")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=12
)
AGENTS = ("ann", "ben", "cat")


def find(store: Store, query: str, agents: Sequence[str] = AGENTS) -> list[FoundMessage]:
    return store.read(lambda tx: find_words(tx, agents, query, 1_000))


def is_there(store: Store) -> bool:
    return store.read(lambda tx: tx.words.is_there())


class Talk:
    """Agents that say texts."""

    def __init__(self, store: Store) -> None:
        self._store, self.said = store, list[Saying]()
        plant(store, ann="root", ben="root", cat="root")

    def add(self, agent: str, text: str) -> None:
        """Let an agent say a text."""
        position = 1 + sum(1 for saying in self.said if saying.agent_uuid == agent)
        messages = says(agent, position, content=text)
        write_alone(self._store, Append(LogUnit(agent, messages), FencingToken(HOST, FIRST_EPOCH)))
        self.said.append(Saying(agent, position, "user", text))

    def expected(self, word: str) -> list[FoundMessage]:
        """The messages with this word, found without any database."""
        wanted = word.lower()
        having = [
            message for message in self.said if any(each.startswith(wanted) for each in indexed_words(message.content))
        ]
        return list(ranked_by_words([wanted], having))


@pytest.mark.slow("many small logs on three databases")
@given(
    st.lists(st.tuples(st.sampled_from(AGENTS), TEXTS), min_size=1, max_size=12),
    st.lists(st.integers(0, 12), max_size=2),
    st.sampled_from(WORDS),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_index_finds_what_the_messages_say_wherever_it_was_brought_up_to_date(
    database_url: NewDatabase, said: list[tuple[str, str]], indexed: list[int], word: str
) -> None:
    with closing(open_with_tables(database_url())) as store:
        talk = Talk(store)
        for number, (agent, text) in enumerate(said):
            if number in indexed:
                index_words(store, AGENTS, least=1)
            talk.add(agent, text)
        if word.isascii():  # SQLite's LIKE knows the capitals of no other letters
            assert find(store, word) == talk.expected(word)
        index_words(store, AGENTS, least=1)
        assert is_there(store)
        assert find(store, word) == talk.expected(word)
        drop_word_index(store)
        assert not is_there(store)


def test_only_a_search_of_many_messages_makes_the_index_and_only_of_what_it_lacks(store: Store) -> None:
    talk = Talk(store)
    for text in ("the mast", "the keel", "the masts"):
        talk.add("ann", text)
    index_words(store, AGENTS, least=4)
    assert not is_there(store)
    index_words(store, AGENTS, least=3)
    assert store.read(lambda tx: tx.words.seen(AGENTS)) == {"ann": 3}
    talk.add("ben", "a mast")
    talk.add("ann", "no mast")
    index_words(store, AGENTS, least=3)
    assert store.read(lambda tx: tx.words.seen(AGENTS)) == {"ann": 3}
    assert [(hit.agent_uuid, hit.position) for hit in find(store, "mast")] == [
        ("ann", 4), ("ann", 3), ("ann", 1), ("ben", 1),
    ]  # fmt: skip
    index_words(store, AGENTS, least=2)
    assert store.read(lambda tx: tx.words.seen(AGENTS)) == {"ann": 4, "ben": 1}
    assert len(store.read(lambda tx: find_in_history(tx, "ann", "mast", 9, 3))) == 2


@pytest.mark.slow("takes a tenth of a second")
def test_a_message_with_very_many_words_is_found_too(store: Store) -> None:
    talk = Talk(store)
    talk.add("ann", "mast " + " ".join(f"word{number}" for number in range(60_000)))
    talk.add("ben", "x" * 5_000 + " keel")
    index_words(store, AGENTS, least=1)
    for word in ("mast", "word59999", "keel", "x" * 300):
        assert len(find(store, word)) == 1
    assert find(store, "rudder") == []


def test_a_prune_a_copy_and_a_backup_leave_the_index_out(
    new_sqlite: NewDatabase, durable_url: NewDatabase, tmp_path: Path
) -> None:
    with closing(open_with_tables(durable_url())) as store:
        talk = Talk(store)
        talk.add("ann", "the mast of a secret ship")
        index_words(store, AGENTS, least=1)
        target = tmp_path / "copy.db"
        with closing(open_store(target)) as copy:
            copy_database(store, copy)
            assert not is_there(copy)
            assert [hit.position for hit in find(copy, "mast")] == [1]
        if not store.leases:
            assert b"secret" in Path(store.location).with_name(Path(store.location).name + "-wal").read_bytes()
            back_up(store, tmp_path / "backup.db", lambda made: None)
            with closing(open_store(tmp_path / "backup.db")) as made:
                assert not is_there(made)
        bury(store, "ann")
        prune_logs(store, 10**15, 10**15)
        assert not is_there(store)
        assert find(store, "mast") == []
