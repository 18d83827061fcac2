"""Two words for an agent: ``brave-otter``, another spelling of the first 22 bits of its uuid.

    words_of("e3qBx5Q…")             # "brave-otter"
    words_of("e3qBx5Q…", letters=3)  # "brave-otter-Bx5"
    beginnings("brave-otter")        # ("e3qA", "e3qB", "e3qC", "e3qD")
    beginnings("brave-otter-Bx5")    # ("e3qBx5",)

Each word encodes 11 bits. The words are computed, so they are as unique as the beginning of a uuid. If that is not
enough, letters of the uuid follow, from the fourth on: the words encode the first three letters, and four of the six
bits of the fourth.

The lists never change, since words that somebody has noted must find the same agent in the next version. The first
letter of a uuid is never ``-`` or ``_``, so the last 64 adjectives are not used.
"""

import re
from functools import cache
from pathlib import Path

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""The digits of base64url, in the order of their values."""

_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}

WAS_CUT_OFF = " (interrupted)"
"""The mark of an awaited agent whose turn was cut off and whose host does not resume it."""

_BITS = 11
"""The bits of a word."""

_KNOWN = 3
"""The number of letters of a uuid that two words encode completely."""

LONGEST = 19
"""The most letters that may follow two words."""

_SPELLED = re.compile(r"([a-z]{3,8})-([a-z]{3,8})(?:-([A-Za-z0-9_-]{1,19}))?")


def words_of(uuid: str, letters: int = 0) -> str:
    """Return the two words of a uuid, and optionally this many of its letters.

    If the text would have the length of a uuid, one more letter follows. An invalid uuid of a damaged row is returned
    unchanged.
    """
    try:
        first, second, third, fourth = (_VALUES[letter] for letter in uuid[: _KNOWN + 1])
    except (KeyError, ValueError):
        return uuid
    number = (first << 16) + (second << 10) + (third << 4) + (fourth >> 2)
    adjectives, nouns = _lists()
    words = f"{adjectives[number >> _BITS]}-{nouns[number % (1 << _BITS)]}"
    if not letters:
        return words
    more = letters + (len(words) + 1 + letters == len(uuid))
    return f"{words}-{uuid[_KNOWN : _KNOWN + more]}"


def beginnings(text: str) -> tuple[str, ...]:
    """Return the beginnings of uuids, all of one length, for two words with optional letters; none for other text."""
    match = _SPELLED.fullmatch(text)
    adjectives, nouns = _places()
    if match is None or match[1] not in adjectives or match[2] not in nouns:
        return ()
    number = (adjectives[match[1]] << _BITS) + nouns[match[2]]
    known = "".join(_ALPHABET[number >> bits & 63] for bits in (16, 10, 4))
    last = _ALPHABET[(number & 15) << 2 :][:4]
    if match[3] is None:
        return tuple(known + letter for letter in last)
    return (known + match[3],) if match[3][0] in last else ()


EVEN = tuple(_ALPHABET[::2])
"""The possible second letters of uuids whose noun is in the first half of the list."""


def words_having(text: str) -> tuple[list[str], list[str], bool]:
    """Return the letters of uuids whose two words contain a text, for a database query.

    Args:
        text: lower-case letters, and perhaps the hyphen.

    Returns:
        For matching adjectives, the first two letters of the uuids. For matching nouns, the third and fourth letters,
        and then ``0`` if the second letter is in `EVEN`, else ``1``. And whether both must match, or one is enough.
    """
    adjectives, nouns = _lists()
    before, hyphen, after = text.partition("-")
    if hyphen:
        first = [place for place, word in enumerate(adjectives) if word.endswith(before)]
        second = [place for place, word in enumerate(nouns) if word.startswith(after)]
    else:
        first = [place for place, word in enumerate(adjectives) if text in word]
        second = [place for place, word in enumerate(nouns) if text in word]
    return (
        [_ALPHABET[place >> 5] + _ALPHABET[(place & 31) * 2 + low] for place in first for low in (0, 1)],
        [
            f"{_ALPHABET[place >> 4 & 63]}{_ALPHABET[(place & 15) * 4 + low]}{place >> 10}"
            for place in second
            for low in range(4)
        ],
        bool(hyphen),
    )


def called(uuid: str, name: str | None) -> str:
    """Return the short name of an agent: its name, or its two words."""
    return name or words_of(uuid)


def called_awaited(uuid: str, name: str | None, *, interrupted: bool) -> str:
    """Return the short name of an agent for which another agent waits, with a mark if its turn was cut off."""
    return f"{called(uuid, name)}{WAS_CUT_OFF if interrupted else ''}"


def letters_apart(uuid: str, other: str) -> int:
    """Return how many letters must follow the two words of a uuid to distinguish it from another uuid."""
    pairs = enumerate(zip(uuid[_KNOWN:], other[_KNOWN:], strict=False), 1)
    return next((letters for letters, (first, another) in pairs if first != another), LONGEST)


@cache
def _lists() -> tuple[list[str], list[str]]:
    here = Path(__file__).parent
    adjectives, nouns = ((here / name).read_text(encoding="ascii").split() for name in ("adjectives.txt", "nouns.txt"))
    return adjectives, nouns


@cache
def _places() -> tuple[dict[str, int], dict[str, int]]:
    adjectives, nouns = ({word: place for place, word in enumerate(words)} for words in _lists())
    return adjectives, nouns
