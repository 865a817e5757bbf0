"""Where requests may go: public addresses, and what the operator allowed."""

import pytest
from toold.sources.address_policy import AddressPolicy

PRIVATE = ["127.0.0.1", "127.9.9.9", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "::1", "fd00::1", "fec0::1"]
CARRIED = [
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
    "0.0.0.0",  # noqa: S104 - an address that is refused
    "224.0.0.1",
]


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_public_addresses_are_allowed(address: str) -> None:
    """What everybody reaches may be asked."""
    assert AddressPolicy(allow_private=False).objection("api.example", address) is None


@pytest.mark.parametrize("address", [*PRIVATE, *CARRIED, *NEVER])
def test_what_only_this_network_reaches_is_refused(address: str) -> None:
    """Loopback, private, link-local and metadata addresses are refused, also where IPv6 carries them."""
    assert AddressPolicy(allow_private=False).objection("api.example", address) is not None


@pytest.mark.parametrize("address", [*PRIVATE, *CARRIED])
def test_private_ones_can_be_allowed(address: str) -> None:
    """``allow_private = true`` opens loopback and private addresses."""
    assert AddressPolicy(allow_private=True).objection("api.example", address) is None


@pytest.mark.parametrize("address", NEVER)
def test_metadata_needs_more_than_that(address: str) -> None:
    """Link-local and metadata addresses stay closed to it; a host that is named may have them."""
    assert AddressPolicy(allow_private=True).objection("api.example", address) is not None
    assert AddressPolicy(("api.example",)).objection("api.example", address) is None


def test_a_host_is_allowed_by_its_name_alone() -> None:
    """Another host at the same address is refused; case, brackets and a last dot make no difference."""
    policy = AddressPolicy(("crm.Internal", "::1"))
    assert policy.objection("CRM.internal.", "10.0.0.1") is None
    assert policy.objection("[::1]", "::1") is None
    assert policy.objection("other.internal", "10.0.0.1") == "is private"


def test_what_is_no_address_is_refused() -> None:
    """A resolver's odd answer opens nothing."""
    assert AddressPolicy(allow_private=True).objection("api.example", "nonsense") == "is no IP address"
