"""Column ``hosts.offers``: the hooks and programs of each host, and the choice of a host for turns that wait for one.

A host writes its offer in the transaction in which it begins. A host in which a turn waits for a hook or a program
moves the branch of that agent to a living host that has all that the open turns of the branch need. So no move makes
another open turn wait. Without such a host the turn waits where it is.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.frozen import NO_DATA
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.placement import SharingHost
from ikigai_actors.tools.hooks.verdict import lacking_hooks


class HostOffer(NamedTuple):
    """The hooks and programs of a process."""

    hooks: Mapping[str, str] = NO_DATA
    """The event of each hook, by its name."""
    programs: Collection[str] = ()
    """The names of its programs."""

    def meets(self, need: "TurnNeed") -> bool:
        """Whether the process has all that a turn needs."""
        return not lacking_hooks(need.hooks, self.hooks) and set(need.programs) <= set(self.programs)


class TurnNeed(NamedTuple):
    """The hooks and programs without which turns do not go on."""

    hooks: tuple[str, ...] = ()
    """The hooks that must be asked, as the setting ``hooks`` names them."""
    programs: tuple[str, ...] = ()
    """The names of programs that are models."""


def describe_offer(tx: Transaction, host: str, offer: HostOffer) -> None:
    """Write the offer of a host, in the transaction in which the host begins."""
    text = json.dumps({"hooks": dict(offer.hooks), "programs": sorted(offer.programs)}, sort_keys=True)
    tx.run("set_offers", id=host, offers=text)


def offers_of_hosts(tx: Transaction) -> dict[str, HostOffer]:
    """Return the offers of the living hosts that share the agents, by the ids of the hosts."""
    read = {host: json.loads(text) for host, text in tx.run("offers_of_hosts")}
    return {host: HostOffer(offer["hooks"], offer["programs"]) for host, offer in read.items()}


def host_with(
    needs: Iterable[TurnNeed], me: str, members: Sequence[SharingHost], offers: Mapping[str, HostOffer]
) -> str | None:
    """Return the host with the fewest agents that has all that turns need, and takes agents; None if there is none.

    Args:
        needs: those of the open turns that would move.
        me: the host that runs them.
        members: the living hosts that share the agents.
        offers: what each host has.
    """
    wanted = [*needs]
    fit = [
        (member.agents, member.host)
        for member in members
        if member.host != me and member.shards and not member.draining
        if all(offers.get(member.host, _NOTHING).meets(need) for need in wanted)
    ]
    return min(fit, default=(0, None))[1]


_NOTHING = HostOffer()
