"""Decides which attachments of a conversation a model sees, and which are replaced by a text. Pure, but it counts.

The limits of a service are data (`providers.attachment_limits`). If the attachments exceed a limit, the oldest are
replaced. They are counted message by message from the beginning, so the same history always gives the same result.
If attachments in passages that were made before must be replaced, the conversation is made again from its beginning.
"""

from collections.abc import Sequence

from ikigai_actors.agent.turn.elision import attachment_reference, too_large
from ikigai_actors.frozen import replace
from ikigai_actors.providers.attachment_limits import AttachmentLimits
from ikigai_actors.providers.blocks import (
    Attached,
    AudioBlock,
    Blob,
    Block,
    DocumentBlock,
    PictureBlock,
    ResultBlock,
    TextBlock,
    attached,
    blobs_in,
)
from ikigai_actors.providers.conversation import Passage
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.messages import Message

Said = tuple[Message | None, Block]
"""A block of a conversation, and the message that it comes from."""


def attachments_of(message: Message) -> list[Said]:
    """Return the attachments of a message, as blocks."""
    return [(message, attached(blob)) for blob in blobs_of(message)]


class ShownAttachments:
    """Chooses, while passages are made, which attachments a conversation shows and which a text replaces."""

    def __init__(self, limits: AttachmentLimits | None, last: Passage | None, hidden: int = 0) -> None:
        """Continue a chain of passages.

        Args:
            limits: The limits of the service; None if they are not known.
            last: The chain so far; None for a conversation that begins.
            hidden: How many of the first attachments are replaced by a text; a chain has its own number.
        """
        self._limits = limits
        self.hidden = hidden if last is None else last.hidden
        """The number of the first attachments that references replace."""
        self.due = 0 if last is None else last.hidden
        """The number that references should replace, by all attachments so far."""
        self._shown: list[Blob] = [blob for blob in last.blobs if self._counts(blob)] if last is not None else []
        self._seen = self.due + len(self._shown)
        self.is_made = self.due == self.hidden
        """Whether the passages so far show the right attachments; else they must be made again."""

    def sent(self, said: Sequence[Said]) -> list[Block]:
        """Return the next blocks of the conversation, with texts in place of attachments beyond the limits."""
        attached = [] if self._limits is None else [blob for _, block in said for blob in blobs_in(block)]
        if self._limits is None or not attached:
            return [block for _, block in said]
        if new := [blob for blob in attached if self._counts(blob)]:
            more = self._limits.excess(self._shown, new)
            self._shown, self.due = [*self._shown, *new][more:], self.due + more
            self.is_made = self.due == self.hidden
        return [block if message is None else self._sent(message, block) for message, block in said]

    def _sent(self, message: Message, block: Block) -> Block:
        match block:
            case ResultBlock(attached=(_, *_)):
                parts = [self._one(message, part) for part in block.attached]
                texts = [block.text, *(part.text for part in parts if isinstance(part, TextBlock))]
                shown = tuple(part for part in parts if not isinstance(part, TextBlock))
                return replace(block, text="\n".join(texts), attached=shown)
            case PictureBlock() | DocumentBlock() | AudioBlock():
                return self._one(message, block)
        return block

    def _one(self, message: Message, block: Attached) -> Attached | TextBlock:
        if self._limits is not None and not self._limits.takes(block.blob):
            return TextBlock(too_large(block.blob))
        if not self._counts(block.blob):
            return block
        self._seen += 1
        return block if self._seen > self.hidden else TextBlock(attachment_reference(message, block.blob))

    def _counts(self, blob: Blob) -> bool:
        return self._limits is not None and self._limits.counts(blob)
