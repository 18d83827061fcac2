"""Keyed calls: a call with a key is carried out once, in any process, however often it is repeated.

    call = KeyedCall("monday", "send", {"to": uuid, "text": "tea"}, scope=uuid, about="tea")
    unit = Once(Send(...), call, now, lambda mail: {"sent": mail.id})
    write_alone(store, unit)            # Mail(id=7, ...): answered as the act is
    write_alone(store, unit)            # raises Repeated, with gave={"sent": 7}

A key names one act within its scope: the agent whose method is called, the sender of a mail, the author of a document;
for a door all of its clients. The same key may name something else in another scope.

    free        the key has no row; also after a refusal, and after an unread prompt or steering message was withdrawn
    claimed     the key has a row; one transaction has written the row and the effect of the act
    pruned      the row is deleted after 30 days, but not while its turn or act is open (`records.log.pruning`)

So a caller that got no answer can repeat the call, and gets the first answer. After any crash there are both the row
and the effect, or neither. If two calls claim a key at once, the database lets one of them. A call with a used key and
other arguments raises `KeyTaken`. The death of an agent and `undo` do not change its keys.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_mapping, check_type, shown
from ikigai_actors.errors import BadInput, KeyTaken, Repeated
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Around, LockedRows, RunAlone, Unit
from ikigai_actors.text import utc_time

KEPT_MS = 30 * 24 * 3600 * 1000
"""The milliseconds after which a prune deletes a row."""

LONGEST_KEY = 200

_TEXTS = ("key", "verb", "digest", "scope", "about")

_ABOUT = 60
"""The most characters of a call's description that its row keeps."""


def check_call_key(key: object) -> str:
    """Return a key, or raise `BadInput` if it is invalid."""
    text = check_type(key, str, "key", "a text of 1 to 200 characters")
    if not (0 < len(text) <= LONGEST_KEY and text.isprintable()):
        raise BadInput(f"Expected a key of 1 to {LONGEST_KEY} printable characters; got {shown(text)}.")
    return text


def scoped_key(principal: str, key: str) -> str:
    """Return a key that is unique to a principal, by its id."""
    scoped = hashlib.sha256(f"{principal}\0{key}".encode()).digest()
    return "api " + base64.urlsafe_b64encode(scoped).decode()


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call with a key, under which it is carried out at most once. Raises `BadInput` for an invalid key."""

    key: str
    """The key: 1 to 200 printable characters."""
    verb: str
    arguments: Mapping[str, Any]
    """The arguments that distinguish two calls, as JSON data."""
    scope: str = ""
    """The uuid of the agent within which the key is unique; empty for clients of a protocol, and for documents of no
    agent.
    """
    agent: str | None = None
    """The uuid of the agent whose method is called; None for none."""
    about: str = ""
    """A text by which a person recognises the call."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """Names that are stored beside the answer: ``children``, by uuid."""

    def __post_init__(self) -> None:
        check_call_key(self.key)

    @property
    def digest(self) -> str:
        """Return the digest of the verb and the arguments, which distinguishes two calls with one key."""
        return hashlib.sha256(json.dumps([self.verb, self.arguments], sort_keys=True).encode()).hexdigest()

    def as_data(self) -> dict[str, Any]:
        """Return the fields of the call that its row needs, as JSON data; `call_in` reads them."""
        texts = {"key": self.key, "verb": self.verb, "digest": self.digest, "scope": self.scope, "about": self.about}
        return {**texts, "names": dict(self.names)}


@dataclass(frozen=True, slots=True)
class _SentCall(KeyedCall):
    """A keyed call that another process has sent as a row. It has a digest in place of the arguments."""

    known: str = ""

    @property
    def digest(self) -> str:
        return self.known


def call_in(data: Mapping[str, Any], agent: str) -> KeyedCall:
    """Return the call from the result of `KeyedCall.as_data`. Raises `BadInput` for other data."""
    try:
        texts = {name: check_type(data[name], str, name, "text") for name in _TEXTS}
        names = check_mapping(data["names"], "names", "a dict")
        return _SentCall(arguments={}, agent=agent, known=texts.pop("digest"), names=names, **texts)
    except (KeyError, TypeError) as error:
        raise BadInput(f"Expected the key of a call; got {shown(data)}.") from error


class Once(Around):
    """A unit that is carried out once for its key; answered as the inner unit is.

    ``gave`` converts that answer to JSON data.

    Raises `Repeated`, with the result of the first time, and `KeyTaken`. If the inner unit raises an error, the key
    stays free.
    """

    __slots__ = ("_call", "_gave", "_now")

    def __init__(self, act: Unit, call: KeyedCall, now: int, gave: Callable[[Any], Mapping[str, Any]]) -> None:
        super().__init__(act)
        self._call, self._now, self._gave = call, now, gave

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        if (known := claim_key(tx, self._call, self._now)) is not None:
            raise Repeated(f"This was done before under key {self._call.key!r}.", known)
        try:
            done = self._act.write(tx, locked)
        except RunAlone as alone:
            release(tx, self._call)
            raise RunAlone(self.around(alone.unit)) from None
        except BaseException:
            release(tx, self._call)
            raise
        note_answer(tx, self._call, self._gave(done))
        return done


def claim_key(tx: Transaction, call: KeyedCall, now: int) -> dict[str, Any] | None:
    """Claim the key of a call. Return None if the key was free; else the stored result of the first call.

    In the same transaction the caller must call `note_answer` or `release`. Raises `KeyTaken`.
    """
    about = call.about if len(call.about) <= _ABOUT else f"{call.about[: _ABOUT - 1]}…"
    row = {"verb": call.verb, "agent": call.agent, "asked": call.digest, "about": about, "now": now}
    if tx.run("claim_call", scope=call.scope, key=call.key, **row):
        return None
    known = answer_under(tx, call)
    assert known is not None  # nobody deletes it in this transaction
    return known


def note_answer(tx: Transaction, call: KeyedCall, gave: Mapping[str, Any]) -> None:
    """Store the result of a call whose key was claimed in this transaction."""
    tx.run("answer_call", scope=call.scope, key=call.key, gave=json.dumps(dict(gave)))


def release(tx: Transaction, call: KeyedCall) -> None:
    """Release a key that was claimed in this transaction."""
    tx.run("release_call", scope=call.scope, key=call.key)


def release_refused(tx: Transaction, call: KeyedCall, gave: Mapping[str, Any]) -> None:
    """Release a key whose call an agent has refused, unless its row has another result meanwhile."""
    tx.run("release_refused", scope=call.scope, key=call.key, gave=json.dumps(dict(gave)))


def release_mail(tx: Transaction, agent: str, mail: int) -> None:
    """Release the key of an unread prompt or steering message that was withdrawn."""
    tx.run("release_answered", scope=agent, gave=json.dumps(left_as(mail)))


def left_as(mail: int) -> dict[str, int]:
    """Return the stored result of the call that sent a prompt or steering message: the number of its mail."""
    return {"mail": mail}


class KeptCall(NamedTuple):
    """A keyed call that was carried out, from its row."""

    scope: str
    key: str
    agent: str | None
    verb: str
    digest: str
    about: str
    gave: str
    at: int


def kept_calls(tx: Transaction, scopes: Iterable[str]) -> list[KeptCall]:
    """Return the keyed calls within some scopes, by scope and key."""
    return [KeptCall(*row) for row in tx.run("calls_of", uuids=list(scopes))]


def kept_answer(tx: Transaction, key: str) -> dict[str, Any] | None:
    """Return the result of the call that a door has carried out under a key; None if there was none."""
    return next((dict(json.loads(gave)) for *_, gave, _ in tx.run("call_of", scope="", key=key)), None)


def answer_under(tx: Transaction, call: KeyedCall) -> dict[str, Any] | None:
    """Return the stored result of a call; None if it was not carried out.

    Raises `KeyTaken` for another call with this key.
    """
    for verb, digest, about, gave, at in tx.run("call_of", scope=call.scope, key=call.key):
        if digest != call.digest:
            what = f"{verb} {about!r}" if about else verb
            when = utc_time(at).strftime("%Y-%m-%d %H:%M:%S UTC")
            raise KeyTaken(
                f"Key {call.key!r} names another call: {what}, of {when}. Use a new key for each new call.", call.key
            )
        return dict(json.loads(gave))
    return None
