"""The addresses that a source's requests may go to. Pure.

An API's document and its server's redirects are untrusted. They must not lead the daemon to addresses that only this
machine or network can reach (SSRF).
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
"""Cloud metadata services, which issue credentials: of most clouds, of AWS and Google over IPv6, of Alibaba, Azure and
Oracle. Azure's address is public but works only inside Azure.
"""
_EMBEDDING_NETWORKS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""Networks of IPv6 addresses that embed IPv4 ones (RFC 6052; RFC 4291, 2.5.5.1; RFC 2765)."""
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
"""The network of such addresses for local use (RFC 8215), whose targets are unknown."""


class AddressPolicy:
    """Allows public addresses, and other addresses that the operator allows."""

    def __init__(self, allow_private: bool | tuple[str, ...], *, setting: str = "the source's allow_private") -> None:
        """``allow_private``: True for private addresses of any host, or the hosts that may have any address.
        ``setting``: the name of this setting in errors.
        """
        self.setting = setting
        self._private = allow_private is True
        self._hosts = frozenset() if isinstance(allow_private, bool) else frozenset(map(_plain, allow_private))

    def rejection_reason(self, host: str, address: str) -> str | None:
        """Returns why requests to this address of this host are forbidden, or None if they are allowed."""
        if _plain(host) in self._hosts:
            return None
        try:
            target = _embedded(ipaddress.ip_address(address.partition("%")[0]))
        except ValueError:
            return "is not an IP address"
        if target.is_link_local or target in _METADATA:
            return "is a cloud metadata service" if target in _METADATA else "is link-local"
        if target.is_multicast or target.is_unspecified:
            return "is multicast or unspecified"
        if self._private or (target.is_global and not _is_site_local(target)):
            return None
        return "is loopback" if target.is_loopback else "is private"


def _plain(host: str) -> str:
    return host.lower().strip("[]").rstrip(".")


def _embedded(address: Address) -> Address:
    """Returns the IPv4 address embedded in an IPv6 address, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    teredo = address.teredo
    embedded = address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
    if embedded is None and int(address) > 1 and any(address in network for network in _EMBEDDING_NETWORKS):
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return embedded or address


def _is_site_local(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address in _LOCAL_NAT64)
