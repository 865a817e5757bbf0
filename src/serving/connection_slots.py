"""Decides which connections of a port stay open: places for authenticated clients, and a few for all others. Pure.

A connection that has not authenticated costs as much as any other, and anyone can open many. So unauthenticated
connections have separate places, and a newcomer displaces the oldest of them: a client that authenticates at once
always finds a place, however many peers are silent. The address with the most unauthenticated peers is the first to
lose a connection.
"""

import ipaddress
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

_IPV6_NETWORK: Final = 64
"""The bits of an IPv6 address that one host cannot choose: it can have any address of its /64 (RFC 4291, 2.5.1)."""

PeerT = TypeVar("PeerT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The number of connections of one port."""

    authenticated: int
    unauthenticated: int
    unauthenticated_per_address: int


class ConnectionSlots(Generic[PeerT]):
    """The open connections of one port."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.displaced = 0
        """The number of connections that lost their place to a newcomer."""
        self._authenticated: set[PeerT] = set()
        # The peers of each address, oldest first, and the address of each peer.
        self._addresses: dict[str, dict[PeerT, None]] = {}
        self._address_of: dict[PeerT, str] = {}

    def __repr__(self) -> str:
        return f"<ConnectionSlots {len(self._authenticated)}/{self.limits.authenticated} +{len(self._address_of)}>"

    @property
    def authenticated(self) -> int:
        return len(self._authenticated)

    @property
    def unauthenticated(self) -> int:
        return len(self._address_of)

    @property
    def full(self) -> bool:
        """Whether no further client can authenticate."""
        return len(self._authenticated) >= self.limits.authenticated

    def enter(self, peer: PeerT, host: str) -> PeerT | None:
        """Adds a new connection from this address. Returns the connection that it displaces, which must be closed."""
        address = _network(host)
        crowded = self._crowded(address)
        displaced = None if crowded is None else next(iter(self._addresses[crowded]))
        if displaced is not None:
            self.leave(displaced)
            self.displaced += 1
        self._addresses.setdefault(address, {})[peer] = None
        self._address_of[peer] = address
        return displaced

    def authenticate(self, peer: PeerT) -> bool:
        """Moves a connection to the authenticated ones. Returns False if no place is free."""
        if peer in self._authenticated:
            return True
        if self.full:
            return False
        self.leave(peer)
        self._authenticated.add(peer)
        return True

    def leave(self, peer: PeerT) -> None:
        """Removes a connection; does nothing if it was displaced."""
        self._authenticated.discard(peer)
        address = self._address_of.pop(peer, None)
        if address is not None:
            peers = self._addresses[address]
            del peers[peer]
            if not peers:
                del self._addresses[address]

    def _crowded(self, newcomer: str) -> str | None:
        """The address that must lose a connection before one from ``newcomer`` can enter."""
        if len(self._addresses.get(newcomer, ())) >= self.limits.unauthenticated_per_address:
            return newcomer
        if len(self._address_of) < self.limits.unauthenticated:
            return None
        return max(self._addresses, key=lambda address: len(self._addresses[address]))


def _network(host: str) -> str:
    """The part of an address that identifies its owner."""
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host.partition("%")[0], _IPV6_NETWORK), strict=False))
    except ValueError:
        return host
