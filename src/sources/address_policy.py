"""Which addresses a source's requests may go to. Pure.

An API's document, and the redirects that its server answers with, are other people's words: they must not lead the
daemon to what only this machine, or this network, can reach.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("169.254.169.254", "fd00:ec2::254", "fd20:ce::254"),
            *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
        ),
    )
)
"""Where clouds tell a machine its keys: most of them, AWS and Google by IPv6; Alibaba, Azure's host, Oracle. Azure's is
a public address that leads to the host from within alone."""
_CARRIERS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv4 addresses within IPv6 (RFC 6052; RFC 4291, 2.5.5.1; RFC 2765)."""
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
"""The same, of a network's own (RFC 8215): what they lead to is not known."""


class AddressPolicy:
    """Public addresses alone, and what the operator allowed beside them."""

    def __init__(self, allow_private: bool | tuple[str, ...]) -> None:
        """``allow_private``: True for loopback and private addresses of any host, or the hosts that may have any."""
        self._private = allow_private is True
        self._hosts = frozenset() if isinstance(allow_private, bool) else frozenset(map(_plain, allow_private))

    def objection(self, host: str, address: str) -> str | None:
        """Why nothing may go to this address of this host, in a few words; None where it may."""
        if _plain(host) in self._hosts:
            return None
        try:
            meant = _embedded(ipaddress.ip_address(address.partition("%")[0]))
        except ValueError:
            return "is no IP address"
        if meant.is_link_local or meant in _METADATA:
            return "is where clouds keep their metadata" if meant in _METADATA else "is link-local"
        if meant.is_multicast or meant.is_unspecified:
            return "is no host's own"
        if self._private or (meant.is_global and not _is_site_local(meant)):
            return None
        return "is loopback" if meant.is_loopback else "is private"


def _plain(host: str) -> str:
    return host.lower().strip("[]").rstrip(".")


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    teredo = address.teredo
    carried = address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
    if carried is None and int(address) > 1 and any(address in network for network in _CARRIERS):
        carried = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return carried or address


def _is_site_local(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address in _LOCAL_NAT64)
