"""References to blobs in the data of messages. Pure; `blobs` beside it has the bytes."""

from collections.abc import Iterable
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.providers.blocks import Blob
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY, Message


def stored_in(attachments: Iterable[Attachment]) -> dict[str, Any]:
    """Return the part of a message's data that refers to these attachments."""
    listed = [attachment.stored() for attachment in attachments]
    return {ATTACHMENTS_KEY: listed} if listed else {}


def blobs_of(message: Message) -> tuple[Blob, ...]:
    """Return the blobs to which a message refers."""
    return tuple(
        Blob(entry["sha256"], entry["media"], entry["size"], entry["name"], entry.get("pixels", 0))
        for entry in message.attached
    )
