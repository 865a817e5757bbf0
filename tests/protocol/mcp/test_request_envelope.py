"""Request envelopes, compared with the SDK's own server."""

import base64
from typing import Any

import pytest
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from toold.protocol.json_rpc import UNSUPPORTED_VERSION, MessageProblem, RpcRequest
from toold.protocol.mcp.mcp_revision import REVISIONS
from toold.protocol.mcp.request_envelope import (
    RequestEnvelope,
    client_of,
    http_envelope,
    revision_of_notification,
    stdio_envelope,
)
from toold.protocol.tool_call import ClientInfo

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
NEW = "2026-07-28"
META = {VERSION: NEW, CAPABILITIES: {}, CLIENT: {"name": "c", "version": "1"}}
HEADERS = {"mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": "echo"}


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


CASES: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"name": "echo", "_meta": META}, HEADERS),
    ({"name": "echo"}, HEADERS),
    ({"name": "echo", "_meta": 7}, HEADERS),
    ({"name": "echo", "_meta": {VERSION: NEW}}, HEADERS),
    ({"name": "echo", "_meta": {CAPABILITIES: {}}}, HEADERS),
    ({"name": "echo", "_meta": META | {VERSION: "2025-11-25"}}, HEADERS),
    ({"name": "echo", "_meta": META | {VERSION: "v9"}}, HEADERS | {"mcp-protocol-version": "v9"}),
    ({"name": "echo", "_meta": META | {VERSION: None}}, HEADERS),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-method": "tools/list"}),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-method": "TOOLS/CALL"}),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-name": "other"}),
    ({"name": "echo", "_meta": META}, {name: value for name, value in HEADERS.items() if name != "mcp-name"}),
    ({"name": "echo", "_meta": META}, {name: value for name, value in HEADERS.items() if name != "mcp-method"}),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-name": encoded("echo")}),
    ({"name": "écho", "_meta": META}, HEADERS | {"mcp-name": encoded("écho")}),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-name": "=?base64?ZWNobw?="}),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-name": "=?base64?!!?="}),
    ({"name": "echo", "_meta": META}, HEADERS | {"mcp-name": "=?base64?/w==?="}),
    ({"_meta": META}, HEADERS),
]


@pytest.mark.parametrize(("params", "headers"), CASES)
def test_envelopes_are_validated_like_the_sdk_does(params: dict[str, Any], headers: dict[str, str]) -> None:
    """A stateless request is accepted or rejected for the same reason as by the SDK."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    expected = classify_inbound_request(body, headers=headers)
    decoded = http_envelope(RpcRequest(1, "tools/call", params), headers)
    if isinstance(expected, InboundLadderRejection):
        assert isinstance(decoded, MessageProblem)
        assert decoded.code == expected.code
    else:
        assert isinstance(decoded, RequestEnvelope)
        assert decoded.revision.name == expected.protocol_version


def test_stateless_envelopes() -> None:
    """They have the client, its tasks extension and the progress token."""
    meta = META | {CAPABILITIES: {"extensions": {"io.modelcontextprotocol/tasks": {}}}, "progressToken": "p"}
    decoded = http_envelope(RpcRequest(1, "tools/call", {"name": "echo", "_meta": meta}), HEADERS)
    assert isinstance(decoded, RequestEnvelope)
    assert (decoded.client.name, decoded.tasks, decoded.progress_token) == ("c", True, "p")


def test_the_client_name_is_optional() -> None:
    """It is only for logs."""
    meta = {VERSION: NEW, CAPABILITIES: {}}
    decoded = http_envelope(RpcRequest(1, "tools/call", {"name": "echo", "_meta": meta}), HEADERS)
    assert isinstance(decoded, RequestEnvelope)
    assert decoded.client.name == ""


def test_task_ids_are_repeated_in_a_header() -> None:
    """In ``Mcp-Name``, like a tool's name."""
    request = RpcRequest(1, "tasks/get", {"taskId": "t-1", "_meta": META})
    headers = HEADERS | {"mcp-method": "tasks/get"}
    assert isinstance(http_envelope(request, headers | {"mcp-name": "t-1"}), RequestEnvelope)
    assert isinstance(http_envelope(request, headers | {"mcp-name": "t-2"}), MessageProblem)


@pytest.mark.parametrize("named", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_older_revisions_are_named_in_a_header(named: str) -> None:
    """Nothing else is required of their requests; progress tokens are read."""
    request = RpcRequest(1, "tools/call", {"_meta": {"progressToken": 7}})
    decoded = http_envelope(request, {"mcp-protocol-version": named})
    assert isinstance(decoded, RequestEnvelope)
    assert (decoded.revision.name, decoded.progress_token, decoded.tasks) == (named, 7, False)


def test_requests_without_the_version_header() -> None:
    """They are of the revision that had no such header, unless the body names another."""
    decoded = http_envelope(RpcRequest(1, "ping", {}), {})
    assert isinstance(decoded, RequestEnvelope)
    assert decoded.revision.name == "2025-03-26"
    assert isinstance(http_envelope(RpcRequest(1, "tools/list", {"_meta": META}), {}), MessageProblem)


def test_unsupported_revisions() -> None:
    """The error lists the supported revisions and the requested one."""
    for problem in (
        http_envelope(RpcRequest(1, "ping", {}), {"mcp-protocol-version": "2020-01-01"}),
        revision_of_notification({"mcp-protocol-version": "2020-01-01"}),
    ):
        assert isinstance(problem, MessageProblem)
        assert problem.code == UNSUPPORTED_VERSION
        assert problem.data == {"supported": [NEW], "requested": "2020-01-01"}
        assert "2025-11-25" in problem.message


@pytest.mark.parametrize(
    ("value", "name"), [({"name": "n" * 300, "version": "1"}, "n" * 200), ({"name": 7}, ""), (None, ""), ("x", "")]
)
def test_a_clients_name(value: object, name: str) -> None:
    """It is truncated; invalid names are ignored."""
    assert client_of(value).name == name


def test_envelopes_without_headers() -> None:
    """Over stdio, a request is of the negotiated revision unless it names a stateless one."""
    agreed = REVISIONS["2025-06-18"]
    plain = stdio_envelope(RpcRequest(1, "tools/call", {"_meta": {"progressToken": 7}}), agreed)
    assert plain == RequestEnvelope(agreed, progress_token=7)
    named = stdio_envelope(RpcRequest(1, "tools/call", {"_meta": META}), agreed)
    assert named == RequestEnvelope(REVISIONS[NEW], ClientInfo("c", "1"))
    for version in ("v9", "2025-06-18", [NEW], None):
        refused = stdio_envelope(RpcRequest(1, "tools/call", {"_meta": META | {VERSION: version}}), agreed)
        assert isinstance(refused, MessageProblem)
        assert refused.code == UNSUPPORTED_VERSION
