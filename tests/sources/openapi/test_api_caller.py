"""Asking an API over real sockets: bodies, secrets, further attempts, bounds."""

import asyncio
import gzip
import logging
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from toold.protocol.trace_context import current_traceparent
from toold.sources.openapi import api_failures
from toold.tools import ToolOutput

from .api_secret import BEARER, SECRET, failure

BASIC = {"type": "basic", "username": "me", "env": "CRM_TOKEN"}
ALL_METHODS = ["get", "put", "post", "delete"]


# --- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*ALL_METHODS, "patch"])
async def test_each_method_reaches_the_api(
    method: str, api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """With URL and body; the answer is data."""
    properties = {"name": {"type": "string"}}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": properties}}}}
    fields = {} if method == "get" else {"requestBody": body}
    answer = await caller_with().call(operation(method, **fields), {} if method == "get" else {"name": "Ann"}, context)
    assert answer == ToolOutput(data={"ok": True})
    (asked,) = api.asked
    assert (asked.method, asked.target) == (method.upper(), "/thing")
    assert asked.body == (b"" if method == "get" else b'{"name": "Ann"}')
    assert method == "get" or asked.headers["content-type"] == "application/json"


async def test_the_span_of_the_call_is_sent(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """If traces are recorded."""
    token = current_traceparent.set("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    await caller_with().call(operation(), {}, context)
    current_traceparent.reset(token)
    await caller_with().call(operation(), {}, context)
    assert api.asked[0].headers["traceparent"] == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert "traceparent" not in api.asked[1].headers


@pytest.mark.parametrize(
    ("auth", "header", "value", "target"),
    [
        (BEARER, "authorization", f"Bearer {SECRET}", "/thing"),
        (BASIC, "authorization", "Basic bWU6aHVudGVyMi1odW50ZXIy", "/thing"),
        ({"type": "api_key", "name": "X-Key", "env": "CRM_TOKEN"}, "x-key", SECRET, "/thing"),
        ({"type": "api_key", "in": "query", "name": "key", "env": "CRM_TOKEN"}, "x", None, f"/thing?key={SECRET}"),
    ],
)  # fmt: skip
async def test_the_secret_is_sent(
    auth: Any, header: str, value: str | None, target: str, api: Any, caller_with: Any, operation: Any, context: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """As configured; it is never logged."""
    caplog.set_level(logging.DEBUG)
    await caller_with(auth=auth).call(operation(), {}, context)
    (asked,) = api.asked
    assert asked.headers.get(header) == value
    assert asked.target == target
    logged = [
        record.getMessage() for record in caplog.records if not record.name.startswith("uvicorn")
    ]  # the API's own
    assert SECRET not in str(logged)


async def test_an_operation_that_needs_no_secret_gets_none(
    api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """With ``security: []``."""
    await caller_with(auth=BEARER).call(operation(security=[]), {}, context)
    assert "authorization" not in api.asked[0].headers


async def test_a_missing_secret_is_an_error(
    api: Any, caller_with: Any, operation: Any, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent; the error names the location and is not retryable."""
    monkeypatch.delenv("CRM_TOKEN")
    error = await failure(caller_with(auth=BEARER).call(operation(), {}, context))
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "no", False)
    assert "the variable CRM_TOKEN is not set" in error.message
    assert not api.asked


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_a_repeated_secret_is_redacted(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """In answers and errors."""
    api.answers = [JSONResponse({"you sent": SECRET}), JSONResponse({"message": f"bad {SECRET}"}, 400)]
    caller = caller_with(auth=BEARER)
    assert await caller.call(operation(), {}, context) == ToolOutput(data={"you sent": "…"})
    error = await failure(caller.call(operation(), {}, context))
    assert error.message == "crm answered HTTP 400: bad …."


async def test_a_repeated_authorization_header_is_redacted(
    api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """A server that echoes requests has a password as Base64."""
    api.answers = [JSONResponse({"authorization": "Basic bWU6aHVudGVyMi1odW50ZXIy"})]
    assert await caller_with(auth=BASIC).call(operation(), {}, context) == ToolOutput(data={"authorization": "Basic …"})


async def test_compressed_answers_are_decompressed_up_to_the_limit(
    api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """A small response that expands past the limit is too large."""
    packed = Response(gzip.compress(b"[" + b" " * 5_000_000 + b"1]"), headers={"content-encoding": "gzip"})
    small = Response(gzip.compress(b"[1]"), media_type="application/json", headers={"content-encoding": "gzip"})
    api.answers = [packed, small]
    caller = caller_with(max_answer_bytes=100_000)
    error = await failure(caller.call(operation(), {}, context))
    assert (error.code, error.executed) == ("RESULT_TOO_LARGE", "yes")
    assert await caller.call(operation(), {}, context) == ToolOutput(data=[1])


async def test_a_large_error_response_is_truncated(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """Its status decides the error."""
    api.answers = [PlainTextResponse("x" * 3_000_000, 404)]
    assert (await failure(caller_with(max_answer_bytes=2048).call(operation(), {}, context))).code == "NOT_FOUND"


async def test_a_large_answer_is_decoded(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """In a thread."""
    api.answers = [JSONResponse(["x" * 1000] * 1000)]
    answer = await caller_with().call(operation(), {}, context)
    assert answer == ToolOutput(data=["x" * 1000] * 1000)


# --- retries ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "put", "delete"])
async def test_idempotent_methods_are_retried(
    method: str, api: Any, caller_with: Any, operation: Any, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that the API asks for; the caller gets a progress message."""
    monkeypatch.setattr(api_failures, "_FIRST_DELAY_S", 0.01)
    api.answers = [Response(status_code=503, headers={"retry-after": "0.01"}), JSONResponse(7)]
    assert await caller_with().call(operation(method), {}, context) == ToolOutput(data=7)
    assert len(api.asked) == 2
    assert context.reports == ["Retrying crm in 0.0 s."]
    assert context.permit_releases == 1


@pytest.mark.parametrize("method", ["post", "patch"])
async def test_other_methods_are_sent_once(
    method: str, api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """The error says that the call may have been executed."""
    api.answers = [Response(status_code=503, headers={"retry-after": "0.01"})]
    error = await failure(caller_with().call(operation(method), {}, context))
    assert (error.executed, error.retryable, error.retry_after_ms) == ("maybe", False, 10)
    assert len(api.asked) == 1


async def test_the_number_of_retries_is_limited(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """By the setting."""
    api.answers = [Response(status_code=503, headers={"retry-after": "0.01"})]
    await failure(caller_with(retries=1).call(operation(), {}, context))
    assert len(api.asked) == 2


async def test_there_is_no_retry_past_the_deadline(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """The error has the API's retry hint."""
    api.answers = [Response(status_code=429, headers={"retry-after": "3600"})]
    error = await failure(caller_with().call(operation(), {}, context))
    assert (error.code, error.retry_after_ms, error.retryable) == ("RATE_LIMITED", 3_600_000, True)
    assert len(api.asked) == 1


async def hang(request: Request) -> Response:
    while not await request.is_disconnected():
        await asyncio.sleep(0.01)
    return Response()


@pytest.mark.parametrize("method", ["get", "post"])
async def test_an_attempt_times_out(method: str, api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """A request that was sent may have been executed."""
    for timeout_s in (0.3, 3, 30):  # on a busy machine, the time may pass before the request is sent
        api.answers = [hang]
        error = await failure(caller_with(timeout_s=timeout_s, retries=0).call(operation(method), {}, context))
        assert (error.code, error.transient) == ("TIMEOUT", True)
        if error.executed != "no":
            break
    assert error.executed == "maybe"


async def test_a_refused_connection_executes_nothing(
    api: Any, caller_with: Any, read_paths: Any, context: Any, unused_tcp_port: int
) -> None:
    """For any method."""
    made = read_paths({"/x": {"post": {}}}, base_url=f"http://127.0.0.1:{unused_tcp_port}").operations[0]
    error = await failure(caller_with().call(made, {}, context))
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "no", True)


async def test_a_lost_connection_may_have_executed_the_request(caller_with: Any, read_paths: Any, context: Any) -> None:
    """The request was read, and no answer came."""

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(drop, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        made = read_paths({"/x": {"post": {}}}, base_url=f"http://127.0.0.1:{port}").operations[0]
        error = await failure(caller_with().call(made, {}, context))
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "maybe", False)


# --- limits ----------------------------------------------------------------------------------------------------------


async def test_private_addresses_are_forbidden_by_default(
    api: Any, caller_with: Any, operation: Any, context: Any
) -> None:
    """Nothing is sent."""
    error = await failure(caller_with(allow_private=False).call(operation(), {}, context))
    assert (error.code, error.executed) == ("PERMISSION_DENIED", "no")
    assert not api.asked


async def test_concurrent_requests_are_limited(api: Any, caller_with: Any, operation: Any, context: Any) -> None:
    """Waiting calls release the daemon's permit."""
    running, most, both = 0, 0, asyncio.Event()

    async def count(_: Request) -> Response:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        if running == 2:
            both.set()
        await both.wait()
        running -= 1
        return JSONResponse(1)

    api.answers = [count]
    caller = caller_with(max_running=2)
    await asyncio.gather(*(caller.call(operation(), {}, context) for _ in range(6)))
    assert most == 2
    assert context.permit_releases == 4


async def test_concurrency_is_shared_fairly_between_principals(
    api: Any, caller_with: Any, operation: Any, context_of: Any
) -> None:
    """A principal whose calls fill the source does not keep the call of another one behind its own waiting calls."""
    ended: list[str] = []
    caller = caller_with(max_running=1)

    async def call_as(name: str) -> None:
        await caller.call(operation(), {}, context_of(name))
        ended.append(name)

    async with asyncio.TaskGroup() as calls:
        for name in ["busy", "busy", "busy", "other"]:
            calls.create_task(call_as(name))
    assert ended == ["busy", "busy", "other", "busy"]


async def test_a_call_that_waits_too_long_is_not_executed(
    api: Any, caller_with: Any, operation: Any, context_with: Any, context: Any
) -> None:
    """The deadline passed before a permit was free."""
    api.answers = [hang]
    caller = caller_with(max_running=1, timeout_s=60, retries=0)
    first = asyncio.create_task(caller.call(operation(), {}, context))
    while not api.asked:
        await asyncio.sleep(0.01)
    asyncio.get_running_loop().call_later(0.1, first.cancel)
    error = await failure(caller.call(operation("post"), {}, context_with(0.1)))
    assert (error.code, error.executed) == ("TIMEOUT", "no")
    assert len(api.asked) == 1
    with pytest.raises(asyncio.CancelledError):
        await first
