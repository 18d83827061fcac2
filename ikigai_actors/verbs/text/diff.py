"""The page of a diff: two histories side by side, step by step. Pure.

    In common: the messages up to 4.

    dba: 2 more                   │ kid: 3 more
       5  user  and the indexes?  │    5  fork  inherited: 4 messages from dba

A step is a prompt, or a reply with the results of its calls. In a narrow terminal, or for a screen reader, the two
histories are one below the other.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.log.diff import Diff, Tail
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.pages import NameOf, message_words, no_name
from ikigai_actors.verbs.text.tree import pad
from ikigai_actors.verbs.text.wrap import width

SIDE_BY_SIDE = 60
"""The columns of a terminal below which the two histories are one below the other."""

_BETWEEN = " │ "
_INDENT = " " * 6
_WORDS = re.compile(r"\S+|\s")
_MOST_LINES = 5
"""The most lines of one message that are shown."""


def diff_page(diff: Diff, columns: int, called: NameOf = no_name, beside: bool = True) -> list[str]:
    """Return the lines of a diff, each of at most this many columns; the histories are side by side if there is room.

    Without ``beside`` the histories are always one below the other.
    """
    beside = beside and columns >= SIDE_BY_SIDE
    column = columns if not beside else (columns - len(_BETWEEN)) // 2
    a, b = ([_title(tail, column), *_steps(tail, column, called)] for tail in (diff.a, diff.b))
    head = [*_folded(_common(diff), columns), ""]
    if not beside:
        return [*head, *(line for step in a for line in step), "", *(line for step in b for line in step)]
    empty: list[str] = []
    rows = [_beside(left, right, column) for left, right in zip_longest(a, b, fillvalue=empty)]
    return [*head, *(line for row in rows for line in row)]


def _beside(left: list[str], right: list[str], column: int) -> Iterator[str]:
    for line, other in zip_longest(left, right, fillvalue=""):
        yield f"{pad(line, column)}{_BETWEEN}{other}".rstrip()


def _common(diff: Diff) -> str:
    if not diff.common:
        return "They have nothing in common."
    return f"In common: the messages up to {diff.common}."


def _title(tail: Tail, column: int) -> list[str]:
    forgets = ", and forgets some of what is in common" if tail.forgets else ""
    more = f"{len(tail.messages)} more" if tail.messages else "nothing more"
    return _folded(f"{tail.name or words_of(tail.agent)}: {more}{forgets}", column)


def _steps(tail: Tail, column: int, called: NameOf) -> list[list[str]]:
    steps: list[list[Message]] = []
    for message in tail.messages:
        if not steps or message.kind in (Kind.USER, Kind.ASSISTANT, Kind.MERGE):
            steps.append([])
        steps[-1].append(message)
    return [[line for message in step for line in _entry(message, column, called)] for step in steps]


def _entry(message: Message, column: int, called: NameOf) -> Sequence[str]:
    words = message_words(message, called)
    text = words.line if words.rule and words.line else one_line(words.entry)
    lines = _folded(f"{message.id:>4}  {message.kind}  {text}", column, indent=_INDENT)
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], f"{_INDENT}…"]


def _folded(text: str, columns: int, indent: str = "") -> list[str]:
    """Wrap a text to lines of at most this many columns, between words where possible."""
    lines, taken = [""], 0
    for part in _WORDS.findall(text):
        room = columns - len(indent)
        for piece in (part,) if width(part) <= room else part:  # a longer word is cut, as Chinese is, without blanks
            if taken + width(piece) > columns:
                lines[-1] = lines[-1].rstrip()
                lines.append(indent)
                taken = len(indent)
                if piece.isspace():
                    continue
            lines[-1] += piece
            taken += width(piece)
    return lines
