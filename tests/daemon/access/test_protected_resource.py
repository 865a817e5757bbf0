"""The metadata of the protected resource."""

import pytest
from toold.daemon.access.protected_resource import ProtectedResource

ISSUER = "https://id.example/realms/a"
MCP = "https://tools.example/mcp"


def test_each_url_has_its_own_metadata() -> None:
    """``resource`` is the URL that the metadata belongs to (RFC 9728, 3.3)."""
    resource = ProtectedResource(ISSUER, MCP, MCP, {"read": ("lean",)})
    assert resource.metadata_url(None) == "https://tools.example/.well-known/oauth-protected-resource/mcp"
    assert resource.metadata_url("lean") == "https://tools.example/.well-known/oauth-protected-resource/mcp/lean"
    whole = {
        "resource": MCP,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "resource_name": "toold",
        "scopes_supported": ["read"],
    }
    assert resource.metadata("", ["lean"]) == resource.metadata("/mcp", ["lean"]) == whole
    assert resource.metadata("/mcp/lean", ["lean"]) == {**whole, "resource": f"{MCP}/lean"}


@pytest.mark.parametrize("path", ["/mcp/other", "/other", "/mcp/lean/x", "/mcpx"])
def test_other_paths_have_no_metadata(path: str) -> None:
    """The document is None."""
    assert ProtectedResource(ISSUER, MCP, MCP).metadata(path, ["lean"]) is None


def test_metadata_behind_a_proxy() -> None:
    """It is found by the path that clients know and by the daemon's path."""
    resource = ProtectedResource(ISSUER, "https://example.org/tools/mcp", "tools")
    assert resource.metadata_url(None) == "https://example.org/.well-known/oauth-protected-resource/tools/mcp"
    assert resource.metadata("/tools/mcp/lean", ["lean"]) == resource.metadata("/mcp/lean", ["lean"]) is not None
    assert resource.audiences(["lean"]) == ["tools", "https://example.org/tools/mcp/lean"]
