"""Search in histories: the messages that contain words of a query, the best matches first.

    find_words(tx, [uuid], "mast height", 10)

The database returns the latest messages with any of the words. Rare words count more than common ones. Messages that
were cleared or undone, and notes for programs, are left out. There is no index: a log of 100,000 messages is read in a
part of a second.

`ranked_by_words` alone decides on the order.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import CONVERSATION, Kind
from ikigai_actors.store.base import Transaction

MOST_WORDS = 12
"""The most words of a query that are used."""
MOST_CANDIDATES = 1_000
"""The most messages with a word that are compared, the latest first."""
_AROUND = 100
"""Characters that are shown before the first hit and after it."""
_KINDS = sorted(CONVERSATION | {Kind.SUMMARY.value})
_WORD = re.compile(r"\w+")


class FoundMessage(NamedTuple):
    """A message that matches a query."""

    agent_uuid: str
    """The uuid of the agent that has written it."""
    position: int
    kind: str
    score: float
    """The score, higher for a better match; comparable only within one query."""
    text: str
    """The text around the first matching word."""


class Saying(NamedTuple):
    """A message that contains one of the words."""

    agent_uuid: str
    position: int
    kind: str
    content: str


def words_of_query(query: str) -> list[str]:
    """Return the words of a query, each once. Raises `BadInput` if there is none."""
    found = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:MOST_WORDS]
    if not found:
        raise BadInput("Expected a query with words to look for; got none. Give several words for one thing.")
    return found


def ranked_by_words(words: Sequence[str], candidates: Sequence[Saying]) -> list[FoundMessage]:
    """Return the messages with one of the words, best first; of equal ones, the latest first."""
    patterns = {word: re.compile(rf"\b{re.escape(word)}", re.IGNORECASE) for word in words}
    counts = [{word: len(pattern.findall(one.content)) for word, pattern in patterns.items()} for one in candidates]
    having = {word: sum(1 for count in counts if count[word]) for word in words}
    found = [
        FoundMessage(one.agent_uuid, one.position, one.kind, score, _excerpt(one.content, patterns.values()))
        for one, count in zip(candidates, counts, strict=True)
        if (score := _score(count, having, len(candidates)))
    ]
    return sorted(found, key=lambda one: (-one.score, -one.position, one.agent_uuid))


def find_words(tx: Transaction, agents: Sequence[str], query: str, most: int) -> list[FoundMessage]:
    """Return the messages of some agents that best match a query, at most ``most``.

    Raises `BadInput` when the query has no word.
    """
    return _find(tx, dict.fromkeys(agents), None, words_of_query(query), most)


def find_in_history(tx: Transaction, agent: str, query: str, most: int, end: int | None = None) -> list[FoundMessage]:
    """Search the history that an agent remembers, inherited or not, in the same way.

    ``end``: the last position; None for all.
    """
    bounds: dict[str, int | None] = {}
    for one in read_lineage(tx, agent):
        bounds[one.uuid] = end
        end = one.fork_message_id if end is None else min(end, one.fork_message_id)
    return _find(tx, bounds, agent, words_of_query(query), most)


def _find(
    tx: Transaction, bounds: Mapping[str, int | None], reader: str | None, words: Sequence[str], most: int
) -> list[FoundMessage]:
    rows: dict[tuple[str, int], Saying] = {}
    for word in words:
        pattern = (
            f"%{word}%"  # an underscore stands for any letter here, and `ranked_by_words` leaves out what has another
        )
        for row in tx.run("messages_saying", uuids=list(bounds), kinds=_KINDS, pattern=pattern, most=MOST_CANDIDATES):
            one = Saying(*row)
            end = bounds[one.agent_uuid]
            if end is None or one.position <= end:
                rows[one.agent_uuid, one.position] = one
    readers = _Readers(tx, reader)
    found: list[FoundMessage] = []
    for hit in ranked_by_words(words, list(rows.values())):
        if readers.shows(hit):
            found.append(hit)
            if len(found) == most:
                break
    return found


class _Readers:
    """The histories in which hits count: that of one agent, or for each hit that of its writer."""

    def __init__(self, tx: Transaction, reader: str | None) -> None:
        self._tx, self._reader = tx, reader
        self._known: dict[str, StoredHistory] = {}

    def shows(self, hit: FoundMessage) -> bool:
        uuid = self._reader or hit.agent_uuid
        if uuid not in self._known:
            self._known[uuid] = StoredHistory(self._tx, read_lineage(self._tx, uuid))
        history = self._known[uuid]
        return history.view().shows(hit.position, history.head)


def _score(count: Mapping[str, int], having: Mapping[str, int], number: int) -> float:
    """More for each word that it has, for rare ones most; a word that comes often counts a little more than once."""
    return sum(
        math.log(1 + number / having[word]) * (times / (times + 1.2) + 0.5) for word, times in count.items() if times
    )


def _excerpt(content: str, patterns: Iterable[re.Pattern[str]]) -> str:
    starts = [match.start() for pattern in patterns if (match := pattern.search(content))]
    start = max(0, min(starts, default=0) - _AROUND)
    end = start + 2 * _AROUND
    text = " ".join(content[start:end].split())
    return f"{'…' if start else ''}{text}{'…' if end < len(content) else ''}"
