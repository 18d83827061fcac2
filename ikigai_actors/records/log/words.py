"""Search in histories: the messages that contain words of a query, the best matches first.

    find_words(tx, [uuid], "mast height", 10)

The database returns the latest messages with any of the words. Rare words count more than common ones. Messages that
were cleared or undone, and notes for programs, are left out.

A search reads short logs. For longer ones it makes an index in the database (`ikigai_actors.store.word_index`). The
index returns candidates up to each agent's mark. The search checks each candidate in the log, and reads the later
messages. So no result depends on the index, and no commit of a message writes to it.

`ranked_by_words` decides the order of the results.
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput, StoreError
from ikigai_actors.records.agents.registry import uuids_below
from ikigai_actors.records.log.heads import heads_of
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import CONVERSATION, Kind
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.word_index import indexed_words

logger = logging.getLogger(__name__)

MOST_WORDS = 12
"""The most words of a query that are used."""
MOST_CANDIDATES = 1_000
"""The most messages with a word that are compared, the latest first."""
WORTH_AN_INDEX = 1_000
"""If the index lacks at least this many messages, a search adds them first."""
INDEXED_AT_ONCE = 1_000
"""The number of messages that are added in one transaction."""
_BESIDE_A_RECALL = 5
"""The most such transactions after a search by a model, because the same thread also reads logs for other agents."""
MOST_RESTS = 64
"""The most agents whose messages after their marks are read; with more agents, all of their messages are read."""
_AROUND = 100
"""The number of characters that are shown before the first hit, and after it."""
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
    """A message that contains one of the words of a query."""

    agent_uuid: str
    position: int
    kind: str
    content: str


def words_of_query(query: str) -> list[str]:
    """Return the words of a query, each once. Raises `BadInput` if there is none."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:MOST_WORDS]
    if not words:
        raise BadInput("Expected a query with words to look for; got none. Give several words for one thing.")
    return words


def ranked_by_words(words: Sequence[str], candidates: Sequence[Saying]) -> Iterator[FoundMessage]:
    """Return the messages with one of the words, best first; of equal ones, the latest first."""
    patterns = {word: re.compile(rf"\b{re.escape(word)}", re.IGNORECASE) for word in words}
    counts = [
        {word: len(pattern.findall(candidate.content)) for word, pattern in patterns.items()}
        for candidate in candidates
    ]
    having = {word: sum(1 for count in counts if count[word]) for word in words}
    number = sum(1 for count in counts if any(count.values()))
    scores = [_score(count, having, number) for count in counts]
    hits = [(score, saying) for score, saying in zip(scores, candidates, strict=True) if score]
    for score, saying in sorted(hits, key=lambda hit: (-hit[0], -hit[1].position, hit[1].agent_uuid)):
        text = _excerpt(saying.content, patterns.values())
        yield FoundMessage(saying.agent_uuid, saying.position, saying.kind, score, text)


def find_words(tx: Transaction, agents: Sequence[str], query: str, most: int) -> list[FoundMessage]:
    """Return the messages of some agents that best match a query, at most ``most``.

    Raises `BadInput` when the query has no word.
    """
    return _find(tx, dict.fromkeys(agents), None, words_of_query(query), most)


def find_in_history(tx: Transaction, agent: str, query: str, most: int, end: int | None = None) -> list[FoundMessage]:
    """Search an agent's visible history, with its inherited part, as `find_words` does.

    ``end``: the last position; None for all.
    """
    bounds: dict[str, int | None] = {}
    for ancestor in read_lineage(tx, agent):
        bounds[ancestor.uuid] = end
        end = ancestor.fork_message_id if end is None else min(end, ancestor.fork_message_id)
    return _find(tx, bounds, agent, words_of_query(query), most)


def index_words(
    store: Store, agents: Sequence[str], least: int = WORTH_AN_INDEX, transactions: int | None = None
) -> None:
    """Add messages of these agents to the index of words, if at least ``least`` of them are missing there.

    The index only makes searches faster. So errors are only logged, and a search then reads the messages themselves.

    Args:
        transactions: the most transactions, of `INDEXED_AT_ONCE` messages each; None for as many as are needed.
    """
    try:
        lags = store.read(lambda tx: _behind(tx, agents))
        if sum(lag.lacking for lag in lags) < least:
            return
        while lags and transactions != 0:
            lags = store.write(partial(_index_some, lags=lags))
            transactions = None if transactions is None else transactions - 1
    except StoreError as error:  # no FTS5, no right to make a table, another process makes it
        logger.info("Words could not be indexed: %s", error)


def index_words_of_reader(store: Store, agent: str, below: bool) -> None:
    """Add a limited number of the messages that a model's search reads to the index. Later searches add the rest."""

    def read(tx: Transaction) -> list[str]:
        return uuids_below(tx, agent) if below else [ancestor.uuid for ancestor in read_lineage(tx, agent)]

    index_words(store, store.read(read), transactions=_BESIDE_A_RECALL)


def drop_word_index(store: Store) -> None:
    """Drop the index of words, because logs are deleted. A later search makes it again when that is worth it."""
    if store.read(lambda tx: tx.words.is_there()):
        store.write(lambda tx: tx.words.drop())


class _Lag(NamedTuple):
    agent: str
    upto: int
    head: int
    lacking: int


def _behind(tx: Transaction, agents: Sequence[str]) -> list[_Lag]:
    seen = tx.words.seen(agents) if tx.words.is_there() else {}
    heads = ((head, max(seen.get(head.uuid, 0), head.fork_message_id)) for head in heads_of(tx, agents))
    return [_Lag(head.uuid, upto, head.last, head.last - upto) for head, upto in heads if head.last > upto]


def _index_some(tx: Transaction, lags: list[_Lag]) -> list[_Lag]:
    """Add the next messages to the index; return the agents that have more messages to add."""
    index, room = tx.words, INDEXED_AT_ONCE
    if not index.is_there():
        index.make()
    for place, lag in enumerate(lags):
        if not room:
            return lags[place:]
        start = index.seen([lag.agent]).get(lag.agent, 0)
        rows = tx.run("next_sayings", uuid=lag.agent, start=start, most=room)
        is_all, room = len(rows) < room, room - len(rows)
        end = max(start, lag.head) if is_all else int(rows[-1][0])
        index.add(lag.agent, end, {at: indexed_words(text) for at, kind, text in rows if kind in _KINDS})
        if not is_all:
            return lags[place:] if end < lag.head else lags[place + 1 :]
    return []


def _find(
    tx: Transaction, bounds: Mapping[str, int | None], reader: str | None, words: Sequence[str], most: int
) -> list[FoundMessage]:
    rows: dict[tuple[str, int], Saying] = {}
    for saying in _candidates(tx, list(bounds), words):
        end = bounds[saying.agent_uuid]
        if end is None or saying.position <= end:
            rows[saying.agent_uuid, saying.position] = saying
    readers = _Readers(tx, reader)
    hits: list[FoundMessage] = []
    for hit in ranked_by_words(words, list(rows.values())):
        if readers.shows(hit):
            hits.append(hit)
            if len(hits) == most:
                break
    return hits


def _candidates(tx: Transaction, agents: Sequence[str], words: Sequence[str]) -> Iterator[Saying]:
    """Iterate over the messages with any of the words: from the index as far as it reaches, and then from the logs."""
    index = tx.words
    seen = index.seen(agents) if index.is_there() else {}
    heads = {head.uuid: head.last for head in heads_of(tx, list(seen))} if seen else {}
    rest = {agent: upto for agent, upto in seen.items() if heads.get(agent, 0) > upto}
    if len(rest) > MOST_RESTS:
        seen, rest = {agent: upto for agent, upto in seen.items() if agent not in rest}, {}
    others = [agent for agent in agents if agent not in seen]
    for word in words:
        if seen:
            yield from starmap(Saying, index.messages_with(word, list(seen), MOST_CANDIDATES))
        # An underscore stands for any letter here, and `ranked_by_words` leaves out what has another.
        asked: dict[str, Any] = {"kinds": _KINDS, "pattern": f"%{word}%", "most": MOST_CANDIDATES}
        if others:
            yield from starmap(Saying, tx.run("messages_saying", uuids=others, start=0, **asked))
        for agent, upto in rest.items():
            yield from starmap(Saying, tx.run("messages_saying", uuids=[agent], start=upto, **asked))


class _Readers:
    """Decides whether a hit is visible: in the history of one agent, or in that of the agent that wrote the hit."""

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
    """Return the score of a message: the sum over its words. Rare words count more, and repeated ones a little more."""
    return sum(
        math.log(1 + number / having[word]) * (times / (times + 1.2) + 0.5) for word, times in count.items() if times
    )


def _excerpt(content: str, patterns: Iterable[re.Pattern[str]]) -> str:
    starts = [match.start() for pattern in patterns if (match := pattern.search(content))]
    start = max(0, min(starts, default=0) - _AROUND)
    end = start + 2 * _AROUND
    text = " ".join(content[start:end].split())
    return f"{'…' if start else ''}{text}{'…' if end < len(content) else ''}"
