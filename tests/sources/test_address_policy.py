"""The addresses that requests may go to."""

import pytest
from toold.sources.address_policy import AddressPolicy

PRIVATE = ["127.0.0.1", "127.9.9.9", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "::1", "fd00::1", "fec0::1"]
EMBEDDED = [
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::127.0.0.1",
    "64:ff9b:1::1",
]
NEVER = [
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:169.254.169.254",
    "fd00:ec2::254",
    "fd20:ce::254",
    "168.63.129.16",
    "192.0.0.192",
    "::ffff:0:169.254.169.254",
    "0.0.0.0",  # noqa: S104 - a forbidden address
    "224.0.0.1",
]


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_public_addresses_are_allowed(address: str) -> None:
    """Also IPv4 addresses embedded in IPv6."""
    assert AddressPolicy(allow_private=False).rejection_reason("api.example", address) is None


@pytest.mark.parametrize("address", [*PRIVATE, *EMBEDDED, *NEVER])
def test_addresses_of_this_network_are_forbidden(address: str) -> None:
    """Loopback, private, link-local and metadata addresses, also embedded in IPv6."""
    assert AddressPolicy(allow_private=False).rejection_reason("api.example", address) is not None


@pytest.mark.parametrize("address", [*PRIVATE, *EMBEDDED])
def test_private_addresses_can_be_allowed(address: str) -> None:
    """``allow_private = true`` allows loopback and private addresses."""
    assert AddressPolicy(allow_private=True).rejection_reason("api.example", address) is None


@pytest.mark.parametrize("address", NEVER)
def test_metadata_services_need_a_named_host(address: str) -> None:
    """``allow_private = true`` does not allow link-local and metadata addresses; naming the host does."""
    assert AddressPolicy(allow_private=True).rejection_reason("api.example", address) is not None
    assert AddressPolicy(("api.example",)).rejection_reason("api.example", address) is None


def test_a_host_is_allowed_by_its_name() -> None:
    """Another host with the same address is forbidden; case, brackets and a trailing dot do not matter."""
    policy = AddressPolicy(("crm.Internal", "::1"))
    assert policy.rejection_reason("CRM.internal.", "10.0.0.1") is None
    assert policy.rejection_reason("[::1]", "::1") is None
    assert policy.rejection_reason("other.internal", "10.0.0.1") == "is private"


def test_malformed_addresses_are_forbidden() -> None:
    """Such as a broken resolver's answer."""
    assert AddressPolicy(allow_private=True).rejection_reason("api.example", "nonsense") == "is not an IP address"
