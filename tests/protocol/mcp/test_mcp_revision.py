"""Which revisions are spoken, and which one is agreed on."""

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from toold.protocol.mcp.mcp_revision import DEFAULT_REVISION, REVISIONS, STATELESS, negotiated


def test_the_sdk_knows_them_all() -> None:
    """Each is one of the specification's, with or without ``initialize`` as there."""
    assert STATELESS == MODERN_PROTOCOL_VERSIONS
    assert {name for name, one in REVISIONS.items() if not one.stateless} <= set(HANDSHAKE_PROTOCOL_VERSIONS)
    assert list(REVISIONS) == sorted(REVISIONS, reverse=True)


@pytest.mark.parametrize("wished", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_what_is_asked_for_is_spoken(wished: str) -> None:
    """A client that begins with ``initialize`` gets the revision that it names."""
    assert negotiated(wished).name == wished


@pytest.mark.parametrize("wished", ["2026-07-28", "2024-11-05", "tomorrow", None, 7])
def test_another_is_answered_with_the_newest(wished: object) -> None:
    """What has no ``initialize``, or is unknown, is answered with the newest that has it."""
    assert negotiated(wished).name == "2025-11-25"


def test_only_the_oldest_has_batches() -> None:
    """And a request that names no revision is of that one."""
    assert [one.name for one in REVISIONS.values() if one.batches] == [DEFAULT_REVISION.name] == ["2025-03-26"]
