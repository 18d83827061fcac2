"""The services of a system for toolsets that are reached by the network: secrets, and rows."""

from collections.abc import Callable, Mapping, Sequence

from ikigai_actors.actors.clock import Clock
from ikigai_actors.records.mcp_listings import KeepListing, mcp_listing
from ikigai_actors.store.base import Store
from ikigai_actors.store.journal import Journal
from ikigai_actors.system.secrets import referred_secret
from ikigai_actors.tools.base import RemoteTools
from ikigai_actors.tools.function import Tool


class StoredRemotes(RemoteTools):
    """The rows of a database for them. What it writes, its journal commits."""

    def __init__(
        self, store: Store, journal: Journal, clock: Clock, redefine: Callable[[Sequence[Tool]], Mapping[str, str]]
    ) -> None:
        """Read from a store, write by a journal, and offer changed tools by ``redefine``."""
        self._store, self._journal, self._clock, self._redefine = store, journal, clock, redefine

    def secret(self, reference: str) -> str:
        return referred_secret(reference)

    def listing(self, server: str) -> tuple[str, str] | None:
        return self._store.read(lambda tx: mcp_listing(tx, server))

    def keep_listing(self, server: str, digest: str, listing: str) -> None:
        self._journal.submit(KeepListing(server, digest, listing, self._clock.now_ms()), lambda result: None)

    def redefine(self, tools: Sequence[Tool]) -> None:
        self._redefine(tools)
