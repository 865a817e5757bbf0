"""Which connections of a port stay open."""

from toold.serving import ConnectionLimits, ConnectionSlots

HOST = "192.0.2.1"


def slots(*, authenticated: int = 2, unauthenticated: int = 4, per_address: int = 4) -> ConnectionSlots[str]:
    return ConnectionSlots(ConnectionLimits(authenticated, unauthenticated, per_address))


def test_a_newcomer_displaces_the_oldest_silent_peer() -> None:
    """However many connect, the latest ones have a place."""
    some = slots()
    displaced = [some.enter(f"peer-{number}", HOST) for number in range(7)]
    assert displaced == [None] * 4 + ["peer-0", "peer-1", "peer-2"]
    assert (some.unauthenticated, some.displaced) == (4, 3)


def test_the_address_with_the_most_peers_loses_one() -> None:
    """A peer of another address keeps its place, even if it is older."""
    some = slots()
    some.enter("honest", "192.0.2.7")
    assert [some.enter(f"peer-{number}", HOST) for number in range(5)] == [None] * 3 + ["peer-0", "peer-1"]
    assert some.authenticate("honest")


def test_an_address_has_a_limit_of_its_own() -> None:
    """Its next peer displaces its oldest one, although the port has free places."""
    some = slots(per_address=2)
    assert [some.enter(str(number), HOST) for number in range(3)] == [None, None, "0"]
    assert some.enter("other", "192.0.2.2") is None


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    """One host can have any address of its /64."""
    some = slots(per_address=2)
    assert [some.enter(str(number), f"2001:db8::{number}") for number in range(3)] == [None, None, "0"]
    assert some.enter("other", "2001:db8:1::1") is None
    assert some.enter("link", "fe80::1%eth0") is None


def test_newcomers_never_displace_an_authenticated_peer() -> None:
    """The places of those that have authenticated are their own, and limited."""
    some = slots()
    for number in range(3):
        some.enter(f"client-{number}", HOST)
    assert [some.authenticate(f"client-{number}") for number in range(3)] == [True, True, False]
    assert some.full
    for number in range(20):
        assert some.enter(f"peer-{number}", HOST) not in {"client-0", "client-1"}
    assert some.authenticate("client-0")
    some.leave("client-0")
    assert (some.authenticated, some.full) == (1, False)


def test_a_displaced_peer_that_leaves_changes_nothing() -> None:
    """Its connection is closed after it has lost its place."""
    some = slots(unauthenticated=1)
    some.enter("first", HOST)
    assert some.enter("second", HOST) == "first"
    some.leave("first")
    assert some.unauthenticated == 1
    some.leave("second")
    assert some.unauthenticated == 0
