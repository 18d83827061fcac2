"""The heartbeats that a host publishes in its row, for readers in other processes.

    journal.submit(PublishSigns(host, encode_signs(HostSigns(now, {uuid: PublishedSign(turn, at, tokens)}))), done)
    published_signs(tx)                     # by agent and turn

Times are absolute, so a text that is not written again stays true as far as it goes: also that of a host that died.
Only the tokens of the last seconds grow old; of a text that was not renewed in time they are passed over. A reader
compares the turn with that of the agent's row, so nothing must be cleaned up when a turn, an agent or a host ends.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import NamedTuple

from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

COUNTS_FOR = 5_000
"""Milliseconds after which the tokens of a text count no more: a host that sees pieces writes it more often."""

MOST_SIGNS = 1_000
"""The most agents of which a host publishes signs: those first whose replies come fastest, then the latest."""


class PublishedSign(NamedTuple):
    """The signs of an agent in a turn, as a host publishes them."""

    turn: int
    """The turn."""
    at: int
    """When it sent its latest heartbeat, in milliseconds since 1970."""
    tokens: int | None
    """About how many tokens came in the seconds before; None when that was too long ago."""


@dataclass(frozen=True, slots=True)
class HostSigns:
    """The signs of its agents that a host publishes."""

    at: int = 0
    """When it looked at them, in milliseconds since 1970."""
    signs: Mapping[str, PublishedSign] = field(default_factory=dict)
    """By the uuid of the agent."""


def first_signs(signs: Mapping[str, PublishedSign]) -> dict[str, PublishedSign]:
    """The signs that a host publishes: `MOST_SIGNS` at most."""
    if len(signs) <= MOST_SIGNS:
        return dict(signs)
    return dict(nlargest(MOST_SIGNS, signs.items(), key=lambda each: (each[1].tokens or 0, each[1].at, each[0])))


def encode_signs(told: HostSigns) -> str:
    """The text of the column; empty when there is no sign."""
    if not told.signs:
        return ""
    return json.dumps({"at": told.at, "signs": [[uuid, *sign] for uuid, sign in told.signs.items()]})


def decode_signs(text: str) -> HostSigns:
    """The value of a text of the column. Nothing, when it cannot be read: another version wrote it, or a hand."""
    try:
        told = json.loads(text or "{}")
        signs = {str(uuid): PublishedSign(*map(int, sign)) for uuid, *sign in told.get("signs", ())}
        return HostSigns(int(told.get("at", 0)), signs)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return HostSigns()


@dataclass(frozen=True, slots=True)
class PublishSigns(Unit):
    """Write the text of a host's column."""

    host: str
    text: str

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("publish_signs", host=self.host, signs=self.text)
        locked.others.add(self.host)  # nobody has to look at agents for it


def published_signs(tx: Transaction) -> dict[tuple[str, int], PublishedSign]:
    """The signs that hosts which have not ended publish, by agent and turn."""
    found = dict[tuple[str, int], PublishedSign]()
    for text, now in tx.run("published_signs"):
        told = decode_signs(text)
        counts = now - told.at <= COUNTS_FOR
        for uuid, sign in told.signs.items():
            before = found.get((uuid, sign.turn))
            if before is None or before.at < sign.at:
                found[uuid, sign.turn] = sign if counts else sign._replace(tokens=None)
    return found
