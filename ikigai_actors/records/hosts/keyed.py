"""Keyed calls: what a client asks for under a key of its own is done once, however often it asks.

    call = KeyedCall("k1", "prompt", {"agent": uuid, "text": "tea"})
    unit = Keyed(Send(...), call, now, lambda mail: {"mail": mail.id})
    write_alone(store, unit)        # KeyedAnswer(gave={"mail": 7}, ...), now and each further time

The row is written in the transaction that does what was asked. So a client whose answer was lost asks again, and gets
the answer that it had; after any crash there is the row with what it says, or neither.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.mail.words import check_word_key
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Around, LockedRows, RunAlone, Unit

KEPT_MS = 30 * 24 * 3600 * 1000
"""Milliseconds after which a prune deletes a row."""


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call under a key. Raises `BadInput` for what cannot be a key."""

    key: str
    """1 to 200 printable characters."""
    name: str
    arguments: Mapping[str, Any]
    """A value that JSON can hold."""

    def __post_init__(self) -> None:
        check_word_key(self.key)

    @property
    def digest(self) -> str:
        """The call's name and arguments, as a row holds them."""
        return hashlib.sha256(json.dumps([self.name, self.arguments], sort_keys=True).encode()).hexdigest()


class KeyedAnswer(NamedTuple):
    """The answer of a `Keyed`."""

    gave: dict[str, Any]
    """The result of the call when it was done."""
    freed: tuple[str, ...] = ()
    """The budgets in which it made room, if it was done now; see `Client.write`."""


class Keyed(Around):
    """A unit that is done once under a key; answered with `KeyedAnswer`.

    Raises what the unit raises, and `BadInput` where the key names another call. A unit that is refused leaves
    its key free.
    """

    __slots__ = ("_call", "_gave", "_now")

    def __init__(self, act: Unit, call: KeyedCall, now: int, gave: Callable[[Any], Mapping[str, Any]]) -> None:
        """Make the unit; ``gave`` makes of the act's answer what JSON can hold of it."""
        super().__init__(act)
        self._call, self._now, self._gave = call, now, gave

    def write(self, tx: Transaction, locked: LockedRows) -> KeyedAnswer:
        key, asked = self._call.key, self._call.digest
        if not tx.run("claim_call", key=key, asked=asked, now=self._now):
            known = answer_under(tx, self._call)
            assert known is not None  # nobody deletes it in this transaction
            return KeyedAnswer(known)
        try:
            done = self._act.write(tx, locked)
        except RunAlone as alone:
            raise RunAlone(self.around(alone.unit)) from None
        gave = dict(self._gave(done))
        tx.run("answer_call", key=key, gave=json.dumps(gave))
        return KeyedAnswer(gave, getattr(done, "freed", ()))


def answer_under(tx: Transaction, call: KeyedCall) -> dict[str, Any] | None:
    """The answer of a call that was done under its key; None when it was not. Raises `BadInput` for another call."""
    for digest, gave in tx.run("call_of", key=call.key):
        if digest != call.digest:
            raise BadInput(f"Key {call.key!r} names another call. Use a new key for each new call.")
        return dict(json.loads(gave))
    return None
