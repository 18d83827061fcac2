"""Table ``mcp_listings``: the tools that remote MCP servers have listed.

Each connection asks its server for the list, and writes a list that has changed. All hosts use the row, which has the
list that was written last.
"""

from dataclasses import dataclass

from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit


@dataclass(frozen=True, slots=True)
class KeepListing(Unit):
    """Store the tools that an MCP server has listed."""

    server: str
    digest: str
    listing: str
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("keep_mcp_listing", server=self.server, digest=self.digest, list=self.listing, now=self.now)


def mcp_listing(tx: Transaction, server: str) -> tuple[str, str] | None:
    """Return the digest of an MCP server's tools, and the list as JSON; None if it has never listed any."""
    rows = tx.run("mcp_listing", server=server)
    return (str(rows[0][0]), str(rows[0][1])) if rows else None
