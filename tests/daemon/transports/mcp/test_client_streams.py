"""Clients of the revisions with ``initialize`` that follow something: whose rights count."""

import pytest
from toold.daemon.app import Daemon
from toold.protocol.authorization import Authorization
from toold.protocol.tool_call import Principal

from .conftest import Serve

LABEL = "a-test-0123456789abcdef00"


@pytest.fixture
async def daemon(serve: Serve) -> Daemon:
    return await serve(TOOLD_DEFAULT_TOOLSET="full")


@pytest.mark.parametrize("revoked", ["first", "second"])
async def test_a_client_has_the_rights_of_its_newest_token(daemon: Daemon, revoked: str) -> None:
    """What it follows ends with that token, not with an older one; and so does the operator right."""
    streams = daemon.http_host.mcp._methods.streams
    first = Authorization(Principal("ada", operator=True), credential=b"first")
    second = Authorization(Principal("ada"), credential=b"second")
    follower = streams.follower(first, "full", LABEL)
    assert streams.follower(second, "full", LABEL) is follower
    assert not follower.principal.operator
    streams.close_unauthorized(lambda access: "revoked" if access.credential == revoked.encode() else None)
    assert (("ada", LABEL) in streams._clients) is (revoked == "first")
