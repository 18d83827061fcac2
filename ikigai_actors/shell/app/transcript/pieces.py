"""Pieces: the contents of a transcript, before they are laid out. Pure: messages in, pieces out.

A reply becomes several pieces: one for each block of thinking, each chunk of its text and each call. A result joins the
piece of its call, followed by the attachments of the result. Most other messages become one piece each. Long pieces are
folded: thinking to its beginning, a call to the beginning of its result.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.shell.app.transcript.markdown_chunks import chunked
from ikigai_actors.verbs.text.call_page import call_subject, whole_call
from ikigai_actors.verbs.text.harmless import harmless, one_line
from ikigai_actors.verbs.text.pages import (
    ForkWords,
    NameOf,
    attached_lines,
    fork_words,
    message_words,
    no_name,
    stop_note,
)
from ikigai_actors.verbs.text.words import duration

ARGUMENTS = 200
"""The most characters shown of a folded call: its name and arguments."""


class Look(StrEnum):
    """The ways in which a piece can be shown."""

    PROMPT = "prompt"
    WAITING = "waiting"
    """A prompt that waits for the end of a turn."""
    MARKDOWN = "markdown"
    PLAIN = "plain"
    """Markdown that is shown as plain text while it arrives."""
    THINKING = "thinking"
    CALL = "call"
    ERROR = "error"
    NOTE = "note"
    PICTURE = "picture"
    """The line of an attached picture, followed by the picture if it can be shown."""
    RULE = "rule"
    TOLD = "told"
    """The output of a command."""
    STRONG = "strong"


class Piece(NamedTuple):
    """A part of a transcript with its text, its look, and the facts about a call or a picture."""

    look: Look
    text: str
    position: int = 0
    """The position of the shown message; 0 for a text that is not in the log."""
    result: str | None = None
    """The result of a call; None while the call runs."""
    call: str = ""
    """The id of the call."""
    failed: bool = False
    """Whether the result of the call is an error."""
    blob: str = ""
    """The hash of the picture."""
    whole: str = ""
    """A call with all its arguments, shown when unfolded."""
    began: int = 0
    """When a call began to run, in milliseconds since 1970; 0 if it has not, or if unknown."""
    progress: tuple[str, ...] = ()
    """For a running call: its duration so far, and the last lines of its output."""
    names: tuple[str, ...] = ()
    """For a line about forks: the names of the children."""


def tidy(text: str) -> str:
    """Return a text fit for the layout: without control characters that could change the terminal, and without tabs."""
    return harmless(text).expandtabs(4)


def pieces_of(messages: Iterable[Message], called: NameOf = no_name) -> list[Piece]:
    """Return the pieces of consecutive messages; a result joins its call if both are among them."""
    pieces: list[Piece] = []
    for message in messages:
        if message.kind == Kind.TOOL_RESULT:
            index, shown = with_result(pieces, message)
            pieces[index : index + 1] = shown
        elif message.kind == Kind.TOOL_CALL:
            if (begun := running_call(pieces, message)) is not None:
                pieces[begun] = pieces[begun]._replace(began=message.created_at)
        elif pieces and (joined := with_fork(pieces[-1], message, called)) is not None:
            pieces[-1] = joined
        else:
            pieces += _pieces(message, called)
    return pieces


def running_call(pieces: Sequence[Piece], message: Message) -> int | None:
    """Return the index of the latest call without a result to which a tool message belongs; None if there is none."""
    call = str(message.data.get("tool_use_id", ""))
    places = range(len(pieces) - 1, -1, -1)
    return next((at for at in places if pieces[at].call == call and _is_open(pieces[at])), None)


def _is_open(piece: Piece) -> bool:
    return piece.look is Look.CALL and piece.result is None


def with_fork(piece: Piece, message: Message, called: NameOf) -> Piece | None:
    """Return the line about forks with one more fork; None if the message is no fork directly after them."""
    if not piece.names or (words := fork_words(message, called)) is None or not piece.text.startswith(words.verb):
        return None
    return _forks(piece.names, words, piece.position)


def _forks(before: tuple[str, ...], words: ForkWords, position: int) -> Piece:
    names = (*before, one_line(words.name))
    return Piece(Look.RULE, f"{words.verb} {words.what}{few(names)}", position, names=names)


_NAMED = 3
"""The most names in a line about forks."""


def few(names: Sequence[str]) -> str:
    """Return names as one text for people: the first ones, and the number of the others."""
    if len(names) > _NAMED:
        return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


_LAST_LINES = 3
"""The number of output lines that are shown of a running call."""


def progress_of(milliseconds: int, printed: str) -> tuple[str, ...]:
    """Return the lines about a running call: its duration, shown after one second, and the last lines of its output."""
    since = duration(milliseconds / 1000) if milliseconds >= 1_000 else ""
    lines = [line for line in tidy(printed).split("\n") if line.strip()]
    return (since, *lines[-_LAST_LINES:]) if since or lines else ()


def with_result(pieces: Sequence[Piece], message: Message) -> tuple[int, list[Piece]]:
    """Return the index of the call that a result belongs to, and the pieces that replace it.

    Args:
        pieces: the pieces before; when the call is not among them, the index is their number.
        message: the message with the result.

    Returns:
        The index, and the call with its result, followed by what is attached to it.
    """
    call, failed = str(message.data.get("tool_use_id", "")), bool(message.data.get("is_error"))
    if (index := running_call(pieces, message)) is not None:
        piece = pieces[index]._replace(result=tidy(message.content), failed=failed, progress=())
        return index, [piece, *_attached(message, piece.position)]
    name = one_line(str(message.data.get("name", "tool")))
    alone = Piece(Look.CALL, name, message.id, tidy(message.content), call, failed)
    return len(pieces), [alone, *_attached(message, message.id)]


def answer_pieces(text: str, position: int = 0) -> list[Piece]:
    """Return the pieces of an answer's text, one for each chunk; ``position`` is the position of the message."""
    return [Piece(Look.MARKDOWN, chunk, position) for chunk in chunked(tidy(text))]


def _pieces(message: Message, called: NameOf) -> list[Piece]:
    match message.kind:
        case Kind.USER | Kind.STEER:
            return [Piece(Look.PROMPT, tidy(message.content), message.id), *_attached(message, message.id)]
        case Kind.ASSISTANT:
            return _reply(message)
        case Kind.ERROR:
            return [Piece(Look.ERROR, tidy(message.content), message.id)]
    if (fork := fork_words(message, called)) is not None:
        return [_forks((), fork, message.id)]
    words = message_words(message, called)
    if message.kind == Kind.MERGE and words.line is not None:  # folded: it may be long
        return [Piece(Look.CALL, words.line, message.id, tidy(message.content))]
    return [] if words.line is None else [Piece(Look.RULE if words.rule else Look.NOTE, words.line, message.id)]


def _attached(message: Message, position: int) -> list[Piece]:
    """Return the attachments of a message as pieces with a note each, at the message's position."""
    pieces = []
    for line, attachment in zip(attached_lines(message), message.attached, strict=True):
        is_picture = str(attachment.get("media")).startswith("image/")
        look, blob = (Look.PICTURE, str(attachment.get("sha256", ""))) if is_picture else (Look.NOTE, "")
        pieces.append(Piece(look, line, position, blob=blob))
    return pieces


def _reply(message: Message) -> list[Piece]:
    reply, position = message.reply, message.id
    thoughts = [str(block.get("thinking", "")) for block in reply.blocks if block.get("type") == "thinking"]
    pieces = [Piece(Look.THINKING, tidy(thought), position) for thought in thoughts if thought.strip()]
    pieces += answer_pieces(message.content, position)
    for call in reply.tool_calls:
        name, arguments = one_line(call.name), dict(call.input)
        folded = f"{name} {call_subject(call.name, arguments)}".rstrip()
        pieces.append(Piece(Look.CALL, folded, position, None, call.id, whole=whole_call(name, arguments)))
    if note := stop_note(reply.stop_reason, not message.content.strip() and not reply.tool_calls):
        pieces.append(Piece(Look.NOTE, one_line(note), position))
    return pieces
