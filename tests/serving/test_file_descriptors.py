"""The limit of open files."""

import resource

import pytest
from toold.serving import descriptors_needed, raise_limit, reachable_limit, share_descriptors


def test_enough_descriptors_change_nothing() -> None:
    """Each port has as many connections as configured."""
    needed = descriptors_needed(5000, 512)
    shares = share_descriptors(needed, 5000, 512)
    assert (shares.connections, shares.unauthenticated, shares.scarce) == (5000, 512, False)


@pytest.mark.parametrize("available", [64, 256, 1024, 4096, descriptors_needed(5000, 512) - 1])
def test_scarce_descriptors_are_shared_out(available: int) -> None:
    """Connections leave 512 descriptors, or half of them, for files, workers and vendors."""
    shares = share_descriptors(available, 5000, 512)
    assert shares.scarce
    assert min(shares.connections, shares.unauthenticated) >= 1
    taken = 2 * (shares.connections + shares.unauthenticated)
    assert available - taken >= min(512, available // 2)


def test_the_soft_limit_is_raised() -> None:
    """Up to what is needed, and never lowered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower = min(soft, 512)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lower, hard))
    try:
        assert reachable_limit(lower - 100) == lower
        assert raise_limit(lower - 100) == lower
        assert raise_limit(lower + 1) == reachable_limit(lower + 1) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
