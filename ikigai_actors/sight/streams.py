"""The stream of events to a page, and their order.

    rows        the fields that have changed since the page's version; events may be dropped: the last value counts
    message     a message of an agent that the page reads: each once, in order; the event's id is the position
    piece       a piece of a reply in progress: the text from a character on
    cut         the reply in progress was cut off; its pieces are void
    notice      the reason why nothing new may come

In one group of events rows come first, then for each agent its messages, then its piece. Pure: the server does the I/O.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.reading import PageQuery, message_as_json, whole_number
from ikigai_actors.reach.replies_on_their_way import RepliesOnTheirWay
from ikigai_actors.reach.rows import LiveRows
from ikigai_actors.records.messages.messages import Message

_MOST_AGENTS = 8
"""The most agents whose logs a page reads at once."""

_AGAIN = 2.0
"""Seconds after which a log is read again even if no event has arrived."""

_NOTHING = (0, 0)


def compact_json(value: object) -> str:
    """Return JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def server_sent(kind: str, data: object, number: str = "") -> str:
    """Return the text of one server-sent event."""
    return (f"id: {number}\n" if number else "") + f"event: {kind}\ndata: {compact_json(data)}\n\n"


class PageStream:
    """The stream of events to one web page.

    The stream knows the version of the rows that the page has, and the position of the page in each log that it reads.
    """

    def __init__(self, version: int, places: Mapping[str, int]) -> None:
        self.version, self.places = version, dict(places)
        self._seen: dict[str, tuple[int, int]] = {}  # by agent: a reply, and how many characters of it
        self._read: dict[str, float] = {}
        self._notice = ""

    def due(self, rows: LiveRows, clock: float) -> dict[str, int]:
        """Return the logs to read now, each with the last position that the page has."""
        unread = {
            uuid: place
            for uuid, place in self.places.items()
            if rows.head(uuid) > place or clock - self._read.get(uuid, float("-inf")) >= _AGAIN
        }
        self._read.update(dict.fromkeys(unread, clock))
        return unread

    def tell(
        self, rows: LiveRows, replies: RepliesOnTheirWay, news: Mapping[str, Sequence[Message]], notice: str
    ) -> str:
        """Return the events for the page since the last call, as text of server-sent events."""
        out: list[str] = []
        seen = rows.since(self.version)
        self.version = seen.version
        if seen.rows or seen.marks:
            out.append(server_sent("rows", {"version": seen.version, "rows": seen.rows, "marks": seen.marks}))
        for uuid in self.places:
            out += self._of(uuid, replies, news.get(uuid, ()))
        if notice != self._notice:
            self._notice = notice
            out.append(server_sent("notice", {"text": notice}))
        return "".join(out)

    def _of(self, uuid: str, replies: RepliesOnTheirWay, messages: Sequence[Message]) -> list[str]:
        out: list[str] = []
        for message in messages:
            if message.id > self.places[uuid]:
                self.places[uuid] = message.id
                at = ",".join(f"{agent}:{place}" for agent, place in self.places.items())
                out.append(server_sent("message", message_as_json(message), at))
        seen = self._seen.get(uuid, _NOTHING)
        if seen != _NOTHING and not replies.is_open(uuid, seen[0]):
            self._seen[uuid] = seen = _NOTHING
            if not out:
                out.append(server_sent("cut", {"agent": uuid}))
        if (piece := replies.behind(uuid, seen)) is not None:
            self._seen[uuid] = (piece.number, piece.at + len(piece.text))
            out.append(server_sent("piece", {"agent": uuid, "at": piece.at, "text": piece.text}))
        return out


def page_stream(query: PageQuery, last_id: str | None, rows: LiveRows) -> tuple[PageStream, bool]:
    """Return the stream for a page, and whether the page must load the whole table first, since it has another epoch's.

    Raises `BadInput`.
    """
    agents = [part for part in query.get("agents", "").split(",") if part]
    if len(agents) > _MOST_AGENTS:
        raise BadInput(f"Expected {_MOST_AGENTS} agents at most, got {len(agents)}.")
    places: dict[str, Any] = dict(zip(agents, [*_numbers(query.get("after", "")), *[0] * len(agents)], strict=False))
    for mark in (last_id or "").split(","):
        uuid, _, place = mark.rpartition(":")
        if uuid in places:
            [places[uuid]] = _numbers(place) or [0]
    version = whole_number("version", query["version"]) if query.get("version") else rows.version
    is_other = version > rows.version or query.get("epoch", rows.epoch) != rows.epoch
    return PageStream(rows.version if is_other else version, places), is_other


def _numbers(text: str) -> list[int]:
    return [whole_number("after", number) for number in text.split(",") if number]
