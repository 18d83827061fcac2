"""The heartbeats that a host publishes in its row, for readers in other processes.

    journal.submit(PublishSigns(host, encode_signs(HostSigns(now, {uuid: PublishedSign(turn, at, tokens)}))), done)
    published_signs(tx)                     # by agent and turn

Times are absolute, so an old text stays true, even after its host has died. Only the tokens of the last seconds become
outdated; readers ignore them if the text was not renewed in time. A reader compares the turn with the turn in the
agent's row, so nothing must be cleaned up when a turn, an agent or a host ends.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import NamedTuple

from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

COUNTS_FOR = 5_000
"""The milliseconds after which the token counts of a text are ignored. A host whose agents get pieces writes more
often.
"""

MOST_SIGNS = 1_000
"""The most agents whose heartbeats a host publishes: the fastest replies first, then the latest heartbeats."""


class PublishedSign(NamedTuple):
    """The latest heartbeat of an agent in a turn, as its host publishes it."""

    turn: int
    """The id of the message that opened the turn."""
    at: int
    """The time of the latest heartbeat, in milliseconds since 1970."""
    tokens: int | None
    """The approximate number of tokens in the last seconds; None when that was too long ago."""


@dataclass(frozen=True, slots=True)
class HostSigns:
    """The heartbeats that a host publishes."""

    at: int = 0
    """The time when the host read them, in milliseconds since 1970."""
    signs: Mapping[str, PublishedSign] = field(default_factory=dict)
    """The heartbeats, by the uuid of the agent."""


def first_signs(signs: Mapping[str, PublishedSign]) -> dict[str, PublishedSign]:
    """Return the heartbeats that a host publishes: at most `MOST_SIGNS`."""
    if len(signs) <= MOST_SIGNS:
        return dict(signs)
    return dict(nlargest(MOST_SIGNS, signs.items(), key=lambda each: (each[1].tokens or 0, each[1].at, each[0])))


def encode_signs(signs: HostSigns) -> str:
    """Return the heartbeats as text for the column of the host's row; empty when there are none."""
    if not signs.signs:
        return ""
    return json.dumps({"at": signs.at, "signs": [[uuid, *sign] for uuid, sign in signs.signs.items()]})


def decode_signs(text: str) -> HostSigns:
    """Return the heartbeats from a text of `encode_signs`.

    There are none if the text cannot be read, for example because another version wrote it.
    """
    try:
        fields = json.loads(text or "{}")
        signs = {str(uuid): PublishedSign(*map(int, sign)) for uuid, *sign in fields.get("signs", ())}
        return HostSigns(int(fields.get("at", 0)), signs)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return HostSigns()


@dataclass(frozen=True, slots=True)
class PublishSigns(Unit):
    """Write the heartbeats of a host's agents to its row."""

    host: str
    text: str

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("publish_signs", host=self.host, signs=self.text)
        locked.others.add(self.host)  # nobody has to look at agents for it


def published_signs(tx: Transaction) -> dict[tuple[str, int], PublishedSign]:
    """Return the heartbeats that living hosts publish, by agent and turn."""
    published = dict[tuple[str, int], PublishedSign]()
    for text, now in tx.run("published_signs"):
        signs = decode_signs(text)
        counts = now - signs.at <= COUNTS_FOR
        for uuid, sign in signs.signs.items():
            before = published.get((uuid, sign.turn))
            if before is None or before.at < sign.at:
                published[uuid, sign.turn] = sign if counts else sign._replace(tokens=None)
    return published
