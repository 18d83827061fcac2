"""The functions of a system for toolsets that are reached over the network: secrets, and stored rows."""

from collections.abc import Callable, Mapping, Sequence

from ikigai_actors.actors.clock import Clock
from ikigai_actors.errors import BadInput
from ikigai_actors.records.accounts import every_account
from ikigai_actors.records.agents import registry
from ikigai_actors.records.mcp_listings import KeepListing, mcp_listing
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.store.base import Store
from ikigai_actors.store.journal import Journal
from ikigai_actors.system.accounts import Accounts, RenewalUnclear
from ikigai_actors.system.secrets import referred_key, referred_secret
from ikigai_actors.tools.base import RemoteTools
from ikigai_actors.tools.function import Tool, ToolError


class StoredRemotes(RemoteTools):
    """The stored rows of a database for remote toolsets. The journal commits their writes."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        redefine: Callable[[Sequence[Tool]], Mapping[str, str]],
        keys: Sequence[str],
        allowed: AllowedAddresses,
    ) -> None:
        """Make the object; nothing is read yet.

        Args:
            store: where rows are read.
            journal: commits writes.
            clock: gives the time.
            redefine: offers changed tools.
            keys: references to the operator's keys.
            allowed: the addresses that a server may name.
        """
        self._store, self._journal, self._clock, self._redefine = store, journal, clock, redefine
        self._keys, self._allowed = keys, allowed
        self._accounts: Accounts | None = None

    def secret(self, reference: str) -> str:
        return referred_secret(reference)

    def listing(self, server: str) -> tuple[str, str] | None:
        return self._store.read(lambda tx: mcp_listing(tx, server))

    def keep_listing(self, server: str, digest: str, listing: str) -> None:
        self._journal.submit(KeepListing(server, digest, listing, self._clock.now_ms()), lambda result: None)

    def redefine(self, tools: Sequence[Tool]) -> None:
        self._redefine(tools)

    def check_accounts(self) -> None:
        self._of_accounts()

    def subject(self, agent: str, label: str) -> str | None:
        labels = self._store.read(lambda tx: registry.get(tx, agent)).labels
        return f"{label}={labels[label]}" if label in labels else None

    def subjects(self, server: str) -> list[str]:
        rows = self._store.read(lambda tx: list(every_account(tx)))
        return [row.subject for row in rows if row.server == server]

    async def token(self, server: str, subject: str, refused: str = "") -> str | None:
        try:
            return await self._of_accounts().token(server, subject, refused)
        except (RenewalUnclear, BadInput) as error:
            raise ToolError(f"The account of {subject} could not be used: {error} This call did not run.") from error

    async def scope(self, server: str, subject: str) -> str:
        return await self._of_accounts().scope(server, subject)

    def _of_accounts(self) -> Accounts:
        """Return the accounts, which the operator's keys open. Raises `BadInput` if there is no key."""
        if self._accounts is None:
            keys = tuple(referred_key(reference) for reference in self._keys)
            perform = self._journal.perform
            self._accounts = Accounts(self._store.read, perform, self._clock.now_ms, keys, self._allowed)
        return self._accounts
