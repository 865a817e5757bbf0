"""Requests of a server that wait for their answers."""

import pytest
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from toold.sources.mcp import server_requests
from toold.sources.mcp.server_requests import MAX_OPEN_REQUESTS, ServerRequests


def ask(request_id: int | str, text: str = "") -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=request_id, method="elicitation/create", params={"message": text})


def test_the_number_of_open_requests_is_limited() -> None:
    """Further ones are dropped until answers have been taken; other messages pass."""
    requests = ServerRequests("s")
    assert all(requests.admits(ask(number)) for number in range(MAX_OPEN_REQUESTS))
    assert not requests.admits(ask("more"))
    assert requests.admits(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
    assert requests.admits(JSONRPCNotification(jsonrpc="2.0", method="notifications/progress"))
    requests.answered(7)
    assert requests.admits(ask("more"))
    assert not requests.admits(ask("still more"))


def test_the_size_of_open_requests_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together; a request that the server cancels is not open any longer."""
    monkeypatch.setattr(server_requests, "MAX_OPEN_BYTES", 1000)
    requests = ServerRequests("s")
    assert requests.admits(ask(1, "x" * 900))
    assert not requests.admits(ask(2, "x" * 900))
    requests.admits(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}))
    assert requests.admits(ask(2, "x" * 900))


def test_requests_with_the_same_id_count_each() -> None:
    """A second answer to one request frees nothing."""
    requests = ServerRequests("s")
    assert all(requests.admits(ask(1)) for _ in range(MAX_OPEN_REQUESTS))
    assert not requests.admits(ask(1))
    for unknown in (2, None, [1]):
        requests.answered(unknown)
    assert not requests.admits(ask(1))
    requests.answered(1)
    assert requests.admits(ask(1))


def test_a_request_that_is_nested_too_deeply_is_dropped() -> None:
    """Its size cannot be found."""
    nested: object = 1
    for _ in range(3000):
        nested = [nested]
    request = JSONRPCRequest.model_construct(jsonrpc="2.0", id=1, method="ping", params={"x": nested})
    assert not ServerRequests("s").admits(request)
