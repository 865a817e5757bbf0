"""Redirects of an API over real sockets: which are followed, and what they are sent."""

import json
from typing import Any

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response
from toold.tools import ToolOutput

from .api_secret import BEARER, SECRET, failure


async def test_redirects_of_reads_are_followed(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """Within the origin with the secret."""
    api.answers = [RedirectResponse("/elsewhere?a=1", 301), JSONResponse(1)]
    assert await caller_with(auth=BEARER).call(operation(), {}, context) == ToolOutput(data=1)
    assert [asked.target for asked in api.asked] == ["/thing", "/elsewhere?a=1"]
    assert api.asked[1].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("auth", [BEARER, {"type": "api_key", "in": "query", "name": "key", "env": "CRM_TOKEN"}])
async def test_other_origins_get_no_secret(
    auth: Any, api: Any, other_api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """Nor header arguments, after a redirect."""
    api.answers = [RedirectResponse(f"{other_api.url}/there", 307)]
    header = {"name": "X-Account", "in": "header", "schema": {"type": "string"}}
    await caller_with(auth=auth).call(operation(parameters=[header]), {"X-Account": "mine"}, context)
    (asked,) = other_api.asked
    assert asked.target == "/there"
    assert SECRET not in json.dumps(asked.headers)
    assert "x-account" not in asked.headers


async def test_redirects_to_private_addresses_are_forbidden(
    api: Any, other_api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """Even from an allowed host."""
    api.answers = [RedirectResponse(other_api.url.replace("127.0.0.1", "localhost"), 302)]
    error = await failure(caller_with(allow_private=["127.0.0.1"]).call(operation(), {}, context))
    assert error.code == "PERMISSION_DENIED"
    assert "allow_private" in error.message
    assert not other_api.asked


@pytest.mark.parametrize(("status", "executed"), [(301, "maybe"), (302, "maybe"), (307, "no"), (308, "no")])
async def test_redirects_of_writes_are_not_followed(
    status: int, executed: str, api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """After 307 and 308 nothing was executed; after others it may have been."""
    api.answers = [RedirectResponse("/elsewhere", status)]
    error = await failure(caller_with().call(operation("post"), {}, context))
    assert (error.code, error.executed) == ("PROVIDER_ERROR", executed)
    assert len(api.asked) == 1


async def test_after_see_other_the_answer_is_fetched(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """After 303 the write is done, and the answer is at the target."""
    api.answers = [RedirectResponse("/result", 303), JSONResponse(1)]
    assert await caller_with().call(operation("post"), {}, context) == ToolOutput(data=1)
    assert [(asked.method, asked.target) for asked in api.asked] == [("POST", "/thing"), ("GET", "/result")]


@pytest.mark.parametrize("location", ["/thing", "ftp://127.0.0.1/", "http://[", "http://127.0.0.1:0x/"])
async def test_endless_and_malformed_redirects_are_errors(
    location: str, api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """Cycles, and targets that are not http URLs."""
    api.answers = [Response(status_code=302, headers={"location": location})]
    error = await failure(caller_with(retries=0).call(operation(), {}, context))
    assert error.code in {"PROVIDER_ERROR", "SERVICE_UNAVAILABLE"}
    assert len(api.asked) <= 6
