"""The addresses to which a host may send. Pure; the sender checks each address after a DNS lookup, before it connects.

    reach = AllowedAddresses.of(["10.0.0.0/8"])
    reach.allows("203.0.113.9", 443, tls=True)       # what is public, by TLS, at 443 or from 1024 on
    reach.allows("10.0.0.7", 80, tls=False)          # what the operator has allowed, also without TLS

An address that is not public, or contains one that is not (mapped, 6to4, Teredo, NAT64), is refused unless the operator
has allowed it. Otherwise the author of a subscription could reach internal addresses through the host.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class AllowedAddresses:
    """The public addresses, and networks that the operator has allowed in addition."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of(cls, networks: Iterable[str]) -> "AllowedAddresses":
        """Allow further networks, such as ``10.0.0.0/8``. Raises `BadInput`."""
        if isinstance(networks, str) or not isinstance(networks, Iterable):
            raise BadInput(f"Expected networks as a list, such as ['10.0.0.0/8']; got {shown(networks)}.")
        allowed: list[IPv4Network | IPv6Network] = []
        for text in networks:
            try:
                allowed.append(ip_network(text.strip()))
            except (ValueError, AttributeError):
                raise BadInput(f"Expected a network, as 10.0.0.0/8 or 127.0.0.1; got {shown(text)}.") from None
        return cls(tuple(allowed))

    def allows(self, text: str, port: int, *, tls: bool) -> bool:
        """Return whether a host may connect to an address and port."""
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address.version == network.version and address in network for network in self.networks):
            return True
        return tls and (port == 443 or port >= 1024) and is_public(address)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is public, and contains no other address."""
    if isinstance(address, IPv6Address):
        hides = address.ipv4_mapped or address.sixtofour or address.teredo
        if hides or address in _COMPATIBLE or any(address in network for network in _NAT64):
            return False
        if address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
