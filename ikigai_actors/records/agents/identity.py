"""The identity of an agent: a random uuid of 22 characters, and perhaps a name.

The uuid is a version 4 UUID in base64url, drawn until it begins with a letter or a digit, so that it is never taken for
an option on a command line. It says nothing about the agent. A name is for people: unique among the living, and never
of the form of a uuid. It is stored in one normal form: ``Zoë`` is the same name whether its last letter is one
character or two.
"""

import base64
import hashlib
import re
import unicodedata
from collections.abc import Callable

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

PREFIX_LENGTH = 4
"""The least characters of a uuid's beginning that find an agent."""

NAME_LENGTH = 64
"""The most characters of a name."""

_UUID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{21}")
_PREFIX = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{{PREFIX_LENGTH - 1},21}}")
_NAME = re.compile(r"\w[\w.+@-]*", re.UNICODE)

RandomBytes = Callable[[int], bytes]
"""A source of randomness: ``os.urandom``, or a seeded one in a simulation."""


def new_agent_uuid(random_bytes: RandomBytes) -> str:
    """Return a new agent uuid: 22 characters of base64url, the first a letter or a digit."""
    while True:
        raw = bytearray(random_bytes(16))
        raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80  # version 4, as `uuid.UUID` makes it in 4 calls
        text = base64.urlsafe_b64encode(raw)[:22].decode("ascii")
        if text[0] not in "-_":
            return text


def derived_agent_uuid(about: str) -> str:
    """Return an agent uuid that is derived from a text. The same text always gives the same uuid."""
    drawn = iter(hashlib.sha256(f"{turn} {about}".encode()).digest() for turn in range(1_000_000))
    return new_agent_uuid(lambda size: next(drawn)[:size])


def is_agent_uuid(text: str) -> bool:
    """Return whether the text has the form of an agent's uuid."""
    return _UUID.fullmatch(text) is not None


def is_agent_prefix(text: str) -> bool:
    """Return whether the text can be the beginning of an agent's uuid, with at least 4 characters."""
    return _PREFIX.fullmatch(text) is not None


def same_name(name: str) -> str:
    """Return the normal form (Unicode's NFC) of a name. Names that look alike in different encodings become equal."""
    return unicodedata.normalize("NFC", name)


def check_name(name: str) -> str:
    """Return the normal form of a name (`same_name`). Raises `BadInput` for a text that cannot be a name."""
    if not isinstance(name, str):
        raise BadInput(f"Expected name to be text; got {shown(name)}.")
    name = same_name(name)
    if is_agent_uuid(name):
        raise BadInput(f"A name may not look like a uuid, and {name!r} does. Choose another one.")
    if len(name) > NAME_LENGTH or _NAME.fullmatch(_without_marks(name)) is None:
        raise BadInput(
            f"A name is 1 to {NAME_LENGTH} letters, digits or . _ + @ - and begins with a letter or "
            f"digit; got {name[:80]!r}."
        )
    return name


def _without_marks(name: str) -> str:
    kept, carries = [], False
    for char in name:
        kind = unicodedata.category(char)[0]
        if kind == "M" and carries:
            continue
        kept.append(char)
        carries = kind == "L"
    return "".join(kept)
