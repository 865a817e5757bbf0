"""The supported revisions, and their negotiation."""

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from toold.protocol.mcp.mcp_revision import DEFAULT_REVISION, REVISIONS, STATELESS, negotiated


def test_the_sdk_has_the_same_revisions() -> None:
    """Each exists in the specification, with or without ``initialize`` as here."""
    assert STATELESS == MODERN_PROTOCOL_VERSIONS
    assert {name for name, item in REVISIONS.items() if not item.stateless} <= set(HANDSHAKE_PROTOCOL_VERSIONS)
    assert list(REVISIONS) == sorted(REVISIONS, reverse=True)


@pytest.mark.parametrize("requested", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_supported_revisions_are_accepted(requested: str) -> None:
    """A client that starts with ``initialize`` gets the revision that it names."""
    assert negotiated(requested).name == requested


@pytest.mark.parametrize("requested", ["2026-07-28", "2024-10-07", "tomorrow", None, 7])
def test_other_revisions_get_the_newest(requested: object) -> None:
    """A revision that is unknown or has no ``initialize`` is answered with the newest that has it."""
    assert negotiated(requested).name == "2025-11-25"


def test_only_the_oldest_has_batches() -> None:
    """A request that names no revision is of that one."""
    assert [item.name for item in REVISIONS.values() if item.batches] == [DEFAULT_REVISION.name] == ["2025-03-26"]
