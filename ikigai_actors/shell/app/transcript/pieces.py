"""Pieces: what a transcript shows, before it is laid out. Pure: messages in, pieces out.

A message becomes a few pieces: a reply its thinking, the chunks of its text and its calls, one each. Pieces that are
long are folded: a call shows the beginning of its result, thinking its beginning.
"""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from ikigai_actors.records.messages import Kind, Message
from ikigai_actors.records.replies import reply_of
from ikigai_actors.shell.app.transcript.markdown_chunks import chunked
from ikigai_actors.shell.line.output import harmless, one_line
from ikigai_actors.shell.text.pages import BROKE_OFF

ARGUMENTS = 200
"""Characters that are shown of a call's arguments while it is folded."""

_SILENT_STOPS = frozenset({"end_turn", "stop_sequence", "tool_use"})


class Look(StrEnum):
    """How a piece looks."""

    PROMPT = "prompt"
    WAITING = "waiting"
    """A prompt that waits for the end of a turn."""
    MARKDOWN = "markdown"
    PLAIN = "plain"
    """Markdown that is not finished."""
    THINKING = "thinking"
    CALL = "call"
    ERROR = "error"
    NOTE = "note"
    RULE = "rule"
    TOLD = "told"
    """What a command printed."""
    STRONG = "strong"


class Piece(NamedTuple):
    """One piece."""

    look: Look
    text: str
    position: int = 0
    """Of the message that it shows; 0 for what is in no log."""
    result: str | None = None
    """What a call gave; None while it runs."""
    call: str = ""
    """The call's id."""
    failed: bool = False
    """Whether the call gave an error."""


def tidy(text: str) -> str:
    """A text that can be laid out: harmless, and without tabs."""
    return harmless(text).expandtabs(4)


def pieces_of(messages: Iterable[Message]) -> list[Piece]:
    """The pieces of some consecutive messages; results stand with their calls where both are among them."""
    pieces: list[Piece] = []
    for message in messages:
        if message.kind == Kind.TOOL_RESULT:
            add_result(pieces, message)
        else:
            pieces += _pieces(message)
    return pieces


def add_result(pieces: list[Piece], message: Message) -> int:
    """Put a result to its call, or at the end when the call is not there; returns the index of the piece."""
    call, failed = str(message.data.get("tool_use_id", "")), bool(message.data.get("is_error"))
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        if piece.look is Look.CALL and piece.call == call and piece.result is None:
            pieces[index] = piece._replace(result=tidy(message.content), failed=failed)
            return index
    name = one_line(str(message.data.get("name", "tool")))
    pieces.append(Piece(Look.CALL, name, message.id, tidy(message.content), call, failed))
    return len(pieces) - 1


def answer_pieces(text: str, position: int = 0) -> list[Piece]:
    """The chunks of an answer's text."""
    return [Piece(Look.MARKDOWN, chunk, position) for chunk in chunked(tidy(text))]


def _pieces(message: Message) -> list[Piece]:
    data, position = message.data, message.id
    match message.kind:
        case Kind.USER:
            return [Piece(Look.PROMPT, tidy(message.content), position)]
        case Kind.ASSISTANT:
            return _reply(message)
        case Kind.TOOL_CALL | Kind.APPROVAL:
            return []  # the call stands there already
        case Kind.CLEAR:
            text = "cleared: it begins anew"
        case Kind.MARK:
            text = f"mark {message.content!r}" if message.content else "mark"
        case Kind.REWIND if "before" in data:
            text = f"took back the prompt at {data['before']}, and all since"
        case Kind.REWIND:
            text = f"rewound to mark {message.content!r}" if message.content else "rewound to the latest mark"
        case Kind.FORK if "child" in data:
            text = f"forked {str(data['child'])[:6]}"
        case Kind.FORK:
            count = position - 1
            text = f"inherited: {count:,} message{'s' * (count != 1)} from {str(data.get('parent', '?'))[:6]}"
        case Kind.RETRY:
            return [Piece(Look.NOTE, BROKE_OFF, position)]
        case Kind.ERROR:
            return [Piece(Look.ERROR, tidy(message.content), position)]
        case Kind.INTERRUPTED:
            return [Piece(Look.NOTE, "[interrupted]", position)]
        case Kind.CONFIGURE:
            told = ", ".join(f"{key} = {value!r}" for key, value in data.items())
            return [Piece(Look.NOTE, one_line(told), position)]
        case _:
            return [Piece(Look.NOTE, f"{message.kind}: {one_line(message.content)}", position)]
    return [Piece(Look.RULE, one_line(text), position)]


def _reply(message: Message) -> list[Piece]:
    reply, position = reply_of(message), message.id
    thoughts = [str(block.get("thinking", "")) for block in reply.blocks if block.get("type") == "thinking"]
    pieces = [Piece(Look.THINKING, tidy(thought), position) for thought in thoughts if thought.strip()]
    pieces += answer_pieces(message.content, position)
    for call in reply.tool_calls:
        arguments = one_line(json.dumps(dict(call.input), ensure_ascii=False, default=str))
        pieces.append(Piece(Look.CALL, f"{one_line(call.name)} {arguments}", position, None, call.id))
    if reply.stop_reason == "interrupted":
        pieces.append(Piece(Look.NOTE, "[interrupted]", position))
    elif reply.stop_reason not in _SILENT_STOPS:
        pieces.append(Piece(Look.NOTE, f"[the answer ends here: {one_line(reply.stop_reason)}]", position))
    elif not message.content and not reply.tool_calls:
        pieces.append(Piece(Look.NOTE, "[an empty answer]", position))
    return pieces
