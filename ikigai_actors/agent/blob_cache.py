"""Caches the bytes of attachments for requests: they are read from the database when first needed, and kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence

from ikigai_actors.errors import ProviderError, StoreError
from ikigai_actors.providers.blocks import Blob

MOST_KEPT = 64 * 1024 * 1024
"""The most bytes that are kept while no request needs them."""

Reader = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Reads blobs by their hashes. Blocks; raises `StoreError`."""


class BlobCache:
    """A cache of the blobs that were used last. Any thread may use it."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, hashes: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of these blobs. Missing blobs are left out. Blocks; raises `StoreError`."""
        with self._lock:
            blobs = {sha256: self._kept[sha256] for sha256 in hashes if sha256 in self._kept}
            for sha256 in blobs:
                self._kept.move_to_end(sha256)
        missing = [sha256 for sha256 in hashes if sha256 not in blobs]
        if missing:
            read = dict(self._read(missing))
            with self._lock:
                self._kept.update(read)
                total = sum(map(len, self._kept.values()))
                while total > MOST_KEPT:
                    _, dropped = self._kept.popitem(last=False)
                    total -= len(dropped)
            blobs |= read
        return blobs


class RequestBlobs(Mapping[str, bytes]):
    """The bytes of the blobs that one request mentions, by their hash. All are read at once when the first is needed.

    Call `load` beforehand on a thread that may wait.
    """

    def __init__(self, cache: BlobCache, mentioned: Sequence[Blob]) -> None:
        self._cache, self._hashes = cache, tuple({blob.sha256: None for blob in mentioned})
        self._bytes: dict[str, bytes] | None = None if self._hashes else {}

    @property
    def to_be_loaded(self) -> bool:
        """Return whether the bytes of some blobs were not read yet."""
        return self._bytes is None

    def load(self) -> dict[str, bytes]:
        """Read the bytes that are missing; return the bytes of all blobs, by hash. Blocks; raises `ProviderError`."""
        if self._bytes is None:
            try:
                self._bytes = self._cache.load(self._hashes)
            except StoreError as error:
                text = f"What is attached cannot be read now ({error}): /resume, or resume(), asks again."
                raise ProviderError(text) from error
        return self._bytes

    def __getitem__(self, sha256: str) -> bytes:
        return self.load()[sha256]

    def __iter__(self) -> Iterator[str]:
        return iter(self.load())

    def __len__(self) -> int:
        return len(self._hashes)
