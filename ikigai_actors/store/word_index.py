"""An index of the words in messages. Searches are faster with it, and nothing else depends on it.

A search makes the index. It is no part of ``schema.sql``: backups, copies and exports leave it out, and it may be
dropped at any time. For each agent a mark has the position up to which the log is in the index. Messages never change,
so the index stays right, except for pruned logs: a prune drops the index.

    words_seen    the mark of each agent
    words_text    the words of each message that a search may find
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

MARKS, INDEX = "words_seen", "words_text"
"""The names of its tables; SQLite has more, which begin with the second."""

LONGEST_WORD = 200
"""Characters of a word that are in the index; of a longer one the beginning is."""

_WORD = re.compile(r"\w+")


RunStatement = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs a statement with parameters; raises `StoreError`."""
RunForEach = Callable[[str, Sequence[Sequence[Any]]], object]
"""Runs a statement with each of several parameters; raises `StoreError`."""


class WordIndex(Protocol):
    """The index of words of one database, used in one transaction."""

    def is_there(self) -> bool:
        """Return whether the index exists."""

    def make(self) -> None:
        """Make an empty index. Raises `StoreError` if this kind of database cannot have one."""

    def drop(self) -> None:
        """Drop the index, if it exists."""

    def seen(self, agents: Sequence[str]) -> dict[str, int]:
        """Return the position up to which the log of each of these agents is indexed.

        Agents without a mark are left out.
        """

    def add(self, agent: str, upto: int, words: Mapping[int, Sequence[str]]) -> None:
        """Add the words of an agent's messages, by position, and set the agent's mark to ``upto``."""

    def messages_with(self, word: str, agents: Sequence[str], most: int) -> list[tuple[Any, ...]]:
        """Return the latest messages of these agents that have a word with this beginning.

        Each row has agent, position, kind and content. Messages without such a word may be among them: a message with
        very many words is always returned.
        """


def indexed_words(text: str) -> list[str]:
    """Return the words of a text in the form of the index, each once."""
    return list(dict.fromkeys(word.lower()[:LONGEST_WORD] for word in _WORD.findall(text)))


def is_of_index(table: str) -> bool:
    """Return whether the table of this name belongs to the index of words."""
    return table == MARKS or table.startswith(INDEX)
