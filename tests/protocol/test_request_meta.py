"""What another server gets of a request's ``_meta``."""

import pytest
from toold.protocol.request_meta import may_change_answer, passed_meta


@pytest.mark.parametrize(
    "key", ["tenant", "com.example/tenant", "com.example.mcp/x", "tracestate", "a/b/c", "toold", "mcp", "", "/x"]
)
def test_a_key_is_passed_on(key: str) -> None:
    """Whatever MCP leaves to clients and servers, unchanged."""
    value = {"a": [1, None]}
    assert passed_meta({key: value}) == {key: value}


@pytest.mark.parametrize(
    "key",
    [
        "progressToken",
        "traceparent",
        "toold/timeout_ms",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/related-task",
        "modelcontextprotocol.io/x",
        "com.mcp.tools/x",
        "mcp/x",
    ],
)
def test_a_key_about_this_connection_is_not(key: str) -> None:
    """Reserved keys would tell the server about another connection than its own."""
    assert passed_meta({key: 1, "x": 2}) == {"x": 2}
    assert passed_meta({key: 1}) is None


@pytest.mark.parametrize("meta", [None, [], "text", 7])
def test_an_invalid_meta_is_ignored(meta: object) -> None:
    """As the other fields of ``_meta`` are."""
    assert passed_meta(meta) is None


def test_traces_change_no_answer() -> None:
    """Other keys may, so that a cached result is not that of the same call."""
    assert not may_change_answer(None)
    assert not may_change_answer({"tracestate": "a=1", "baggage": "b=2"})
    assert may_change_answer({"tracestate": "a=1", "tenant": "t"})
