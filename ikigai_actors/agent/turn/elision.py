"""Elision: replaces messages that are too long by references, which the call ``recall`` resolves. Pure.

Long results of calls are replaced to save tokens, and attachments if a service takes no more of them.

A ``summary`` message without a text records the position up to which results are replaced. No model is asked for it,
and nothing is deleted. The position is decided once, not at each request: otherwise the beginnings of requests would
differ, and the provider's cache would not help.
"""

from ikigai_actors.attachments import name_and_size
from ikigai_actors.providers.blocks import Blob
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.skills_beside import skills_beside
from ikigai_actors.records.messages.steered import words_beside

RECALL = "recall"
"""The built-in call that shows a message."""

CHANGED_BY = "changed_by"
"""The key in the data of a result that has the names of the hooks that have changed the call's arguments."""

ELIDED_FROM = 2_000
"""The least characters of a result that counts as long."""

ELIDED_TOKENS = 20
"""The approximate number of tokens of a reference."""


def is_elided(message: Message, elide: int) -> bool:
    """Return whether a message is replaced by a reference, when long results before the position ``elide`` are."""
    if "skill" in message.data:
        return False
    return message.id < elide and message.kind == Kind.TOOL_RESULT and len(message.content) >= ELIDED_FROM


def reference(message: Message) -> str:
    """Return the text that replaces a long result. It names the message for ``recall``."""
    size = f"{len(message.content.encode('utf-8', 'replace')) / 1_000:.0f} KB"
    return f"({size}; {_recalled(message)})"


def attachment_reference(message: Message, blob: Blob) -> str:
    """Return the text that replaces an attachment of a message. It refers to the attachment."""
    return f"({_words(blob)}; {_recalled(message)})"


def too_large(blob: Blob) -> str:
    """Return the text that replaces an attachment which is too large for the model."""
    return f"({_words(blob)}: too large for this model)"


def _words(blob: Blob) -> str:
    return name_and_size({"name": blob.name, "media": blob.media, "size": blob.size})


def _recalled(message: Message) -> str:
    place = message.data.get("recalled", message.id)
    return f"message {place}: {RECALL}({place}) shows it"


def text_to_model(message: Message, elide: int) -> str:
    """Return the text of a message for a model, when long results before the position ``elide`` are replaced."""
    if message.kind == Kind.USER or message.kind == Kind.ASSISTANT:
        return message.content  # nothing stands beside it, and it is never shown by reference
    if beside := [*skills_beside(message), *words_beside(message)]:
        return "\n".join((message.content, *(passage["text"] for passage in beside)))
    if is_elided(message, elide):
        return reference(message)
    changed = message.data.get(CHANGED_BY)
    return f"[arguments changed by {', '.join(map(str, changed))}]\n{message.content}" if changed else message.content
