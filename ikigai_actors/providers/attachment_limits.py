"""The limits of pictures, documents and sounds in a request, by service. Pure.

A conversation is sent again with each request, so an attachment that a service refuses would make every later request
fail. An attachment that is too large by itself is replaced by a line of text. If all of them together are too much,
references replace the oldest ones. Enough are replaced at once to make room for as many new ones. Until then the
beginning of the requests stays the same, as a provider's prompt cache needs it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ikigai_actors.providers.blocks import Blob


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """The limits of a service for attachments. Bytes are counted after base64 encoding: four for three."""

    number: int
    """The most attachments in a request."""
    size: int
    """Bytes of all in a request."""
    picture_size: int | None = None
    """The most bytes of a picture; None for no limit but `size`."""
    pixels: int | None = None
    """The most pixels of a picture along a side; None for no limit."""
    many: int | None = None
    """With more than this number of attachments in a request, `pixels_of_many` replaces `pixels`; None for never."""
    pixels_of_many: int = 0
    """The most pixels of a picture along a side in a request with many attachments."""
    kinds: frozenset[str] = frozenset({"image", "application"})
    """The first halves of the media types that are sent; other attachments are not counted."""

    def takes(self, blob: Blob) -> bool:
        """Return whether the service accepts this attachment in a request without others."""
        sent, is_picture = _sent(blob), _kind(blob) == "image"
        small = not is_picture or self.pixels is None or blob.pixels <= self.pixels
        limit = self.picture_size if is_picture and self.picture_size is not None else self.size
        return _kind(blob) not in self.kinds or (small and sent <= limit)

    def counts(self, blob: Blob) -> bool:
        """Return whether this attachment is sent, rather than replaced by a text, and so counts against the limits."""
        return _kind(blob) in self.kinds and self.takes(blob)

    def excess(self, shown: Sequence[Blob], new: Sequence[Blob]) -> int:
        """Return how many of the oldest attachments must be replaced by references for the service to accept the rest.

        New attachments, of one message or one round of results, are shown as far as the limits allow.
        """
        every = (*shown, *new)
        if self._fits(every):
            return 0
        starts = (
            start for start in range(1, len(every) + 1) if self._fits(every[start:], 2 if start < len(shown) else 1)
        )
        return next(starts, len(every))

    def _fits(self, blobs: Sequence[Blob], parts: int = 1) -> bool:
        """Return whether attachments keep within the limits, or within the fraction 1/``parts`` of them."""
        most = self.number if self.many is None or not any(map(self._is_large, blobs)) else self.many
        return len(blobs) * parts <= most and sum(map(_sent, blobs)) * parts <= self.size

    def _is_large(self, blob: Blob) -> bool:
        """Return whether a picture may be too large for a request with many pictures. True if its size is unknown."""
        return _kind(blob) == "image" and not 0 < blob.pixels <= self.pixels_of_many


_MB = 2**20
MESSAGES_LIMITS = AttachmentLimits(
    number=100, size=28 * _MB, picture_size=5 * _MB, pixels=8_000, many=20, pixels_of_many=2_000
)
"""The limits of Anthropic: a request has 32 MB; the rest is left for text."""
_WITH_SOUNDS = frozenset({"image", "application", "audio"})
OPENAI_LIMITS = AttachmentLimits(number=500, size=48 * _MB, kinds=_WITH_SOUNDS)
"""The limits of OpenAI: a request has 50 MB; the rest is left for text."""
NOTHING_ATTACHED = AttachmentLimits(number=0, size=2**63, kinds=_WITH_SOUNDS)
"""The limits of a service that accepts text only."""


def _kind(blob: Blob) -> str:
    return blob.media.partition("/")[0]


def _sent(blob: Blob) -> int:
    return -(-blob.size // 3) * 4
