"""Elision: what is too much is shown by reference, and the call ``recall`` shows each of it again. Pure.

Long results of calls are shown so to save tokens, and pictures where a service takes no more of them.

A ``summary`` without a text says up to where: no model is asked for it, and nothing is taken away. It is decided once,
not at each request, or each would differ from the one before and find nothing of it in the provider's cache.
"""

from ikigai_actors.attachments import name_and_size
from ikigai_actors.providers.blocks import Blob
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.skills_beside import skills_beside
from ikigai_actors.records.messages.steered import words_beside

RECALL = "recall"
"""The built-in call that shows a message."""

CHANGED_BY = "changed_by"
"""In the data of a result: the hooks that have changed the arguments of its call."""

ELIDED_FROM = 2_000
"""From this many characters on a result is long."""

ELIDED_TOKENS = 20
"""How many tokens a reference has, about."""


def is_elided(message: Message, elide: int) -> bool:
    """Whether a message is shown by reference, when long results before a position are."""
    if "skill" in message.data:
        return False
    return message.id < elide and message.kind == Kind.TOOL_RESULT and len(message.content) >= ELIDED_FROM


def reference(message: Message) -> str:
    """The reference in place of a long result. For one of ``recall`` it names the message that was recalled."""
    size = f"{len(message.content.encode('utf-8', 'replace')) / 1_000:.0f} KB"
    return f"({size}; {_recalled(message)})"


def attachment_reference(message: Message, blob: Blob) -> str:
    """The reference in place of a picture or the like of a message."""
    return f"({_words(blob)}; {_recalled(message)})"


def too_large(blob: Blob) -> str:
    """The reference in place of a picture or the like that the model does not take."""
    return f"({_words(blob)}: too large for this model)"


def _words(blob: Blob) -> str:
    return name_and_size({"name": blob.name, "media": blob.media, "size": blob.size})


def _recalled(message: Message) -> str:
    place = message.data.get("recalled", message.id)
    return f"message {place}: {RECALL}({place}) shows it"


def text_to_model(message: Message, elide: int) -> str:
    """The text of a message as a model sees it, when long results before a position are shown by reference."""
    if message.kind == Kind.USER or message.kind == Kind.ASSISTANT:
        return message.content  # nothing stands beside it, and it is never shown by reference
    if beside := [*skills_beside(message), *words_beside(message)]:
        return "\n".join((message.content, *(one["text"] for one in beside)))
    if is_elided(message, elide):
        return reference(message)
    changed = message.data.get(CHANGED_BY)
    return f"[arguments changed by {', '.join(map(str, changed))}]\n{message.content}" if changed else message.content
