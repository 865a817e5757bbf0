"""``POST /tools/{name}`` and ``GET /openapi.json`` of a running daemon."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate
from tests.daemon.transports.rest.conftest import RestDaemon
from tests.waiting import until
from toold.protocol.tool_call import LOCAL
from toold.tools import Tool, ToolContext

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_call_answers_with_the_tools_data(rest: RestDaemon) -> None:
    """The body is the tool's data, the headers have the metadata and the call's id, and the audit has the call."""
    answer = await rest.client.post("/tools/echo", {"value": {"a": [1, "é"]}})
    assert (answer.status_code, answer.json()) == (200, {"a": [1, "é"]})
    assert json.loads(answer.headers["toold-metadata"])["timings"]["queue_ms"] >= 0
    row = (await rest.daemon.view.ended(LOCAL, 1))[0]
    assert (row["id"], row["tool"]) == (answer.headers["x-request-id"], "echo")
    text = await rest.client.post("/tools/chat", {"prompt": "Hello"})
    assert text.status_code == 200
    assert json.loads(text.headers["toold-metadata"])["simulated"] is True


async def test_a_call_without_a_body_has_no_arguments(rest: RestDaemon) -> None:
    """An empty body needs no content type."""
    assert (await rest.client.post("/tools/version")).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "code", "message"),
    [
        ("/tools/ecco", {}, {}, 404, "TOOL_NOT_FOUND", "'echo'"),
        ("/tools/echo", {"txt": 1}, {}, 422, "VALIDATION_ERROR", "did you mean"),
        ("/tools/echo", b"[1]", {}, 400, "INVALID_REQUEST", "JSON object"),
        ("/tools/echo", b"{", {}, 400, "INVALID_REQUEST", "not JSON"),
        ("/tools/echo", {}, {"content_type": "text/plain"}, 415, "INVALID_REQUEST", "application/json"),
        ("/tools/echo?timeout_ms=never", {}, {}, 400, "INVALID_REQUEST", "timeout_ms"),
        ("/tools/echo?timeout=1", {}, {}, 400, "INVALID_REQUEST", "only timeout_ms"),
        ("/tools/echo", {}, {"idempotency_key": "k" * 513}, 400, "INVALID_REQUEST", "Idempotency-Key"),
        ("/toolsets/none/tools/echo", {}, {}, 404, "NOT_FOUND", "you may use"),
        ("/tools/echo/more", {}, {}, 404, "NOT_FOUND", "POST /tools/NAME"),
        ("/openapi.json", {}, {}, 405, "INVALID_REQUEST", "GET only"),
    ],
)
async def test_bad_requests(
    rest: RestDaemon, path: str, body: Any, headers: dict[str, str], status: int, code: str, message: str
) -> None:
    """Each gets an HTTP status, a code of the error table, and a message that says what to do."""
    answer = await rest.client.post(path, body, **headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["executed"]) == (status, code, "no")
    assert message in error["message"]


async def test_a_token_reaches_its_toolsets_alone(rest: RestDaemon) -> None:
    """The guest's default toolset and document are ``small``; other toolsets do not exist for it."""
    assert (await rest.unknown.post("/tools/echo", {"value": 1})).status_code == 401
    assert (await rest.guest.post("/tools/echo", {"value": 1})).json() == 1
    assert (await rest.guest.post("/tools/chat", {"prompt": "x"})).status_code == 404
    assert (await rest.guest.post("/toolsets/core/tools/echo", {"value": 1})).status_code == 404
    assert list((await rest.guest.document())["paths"]) == ["/tools/00_INIT", "/tools/echo"]


async def test_the_document_is_valid_and_its_paths_are_served(rest: RestDaemon) -> None:
    """A validator accepts it, it has each listed tool, and a server and a path of it make a call."""
    document = await rest.client.document()
    validate(document)
    names = {info.name for info in rest.daemon.router.catalog.view(rest.daemon.router.catalog.default).infos}
    assert {operation["post"]["operationId"] for operation in document["paths"].values()} == names
    small = await rest.client.document("/toolsets/small/openapi.json")
    url = small["servers"][0]["url"] + next(path for path in small["paths"] if path.endswith("echo"))
    assert (await rest.client.post(url, {"value": 5})).json() == 5


async def test_a_key_is_a_request_id(rest: RestDaemon) -> None:
    """A repeat gets the stored answer, other arguments get 409, and the key of another principal is another one."""
    body = {"value": [1]}
    other = await rest.guest.post("/tools/echo", {"value": 0}, idempotency_key="order-7")
    first = await rest.client.post("/tools/echo", body, idempotency_key="order-7")
    repeat = await rest.client.post("/tools/echo", body, idempotency_key="order-7")
    assert (other.json(), first.json(), repeat.json()) == (0, [1], [1])
    assert json.loads(repeat.headers["toold-metadata"])["replayed"] is True
    conflict = await rest.client.post("/tools/echo", {"value": [2]}, idempotency_key="order-7")
    assert (conflict.status_code, conflict.json()["error"]["code"]) == (409, "REQUEST_ID_CONFLICT")


async def test_a_stream_has_the_text_and_then_the_result(rest: RestDaemon) -> None:
    """Chunks are events, their text is the answer's, and an error before the first event is a status."""
    answer = await rest.client.post("/tools/chat", {"prompt": "Hello"}, accept="text/event-stream")
    events = [parse(event) for event in answer.text.split("\n\n") if event.startswith("event")]
    assert events[-1][0] == "result"
    assert events[-1][1]["metadata"]["simulated"] is True
    text = "".join(data["text"] for name, data in events if name == "chunk")
    assert text == events[-1][1]["result"]["text"]
    refused = await rest.client.post("/tools/echo", {"txt": 1}, accept="text/event-stream")
    assert refused.status_code == 422


def parse(event: str) -> tuple[str, Any]:
    name, data = event.split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


@pytest.mark.asyncio(loop_scope="function")
async def test_progress_and_disconnects(serve: Callable[..., Any], make_tool: Callable[..., Tool]) -> None:
    """A stream has progress; a client that leaves ends its call, unless the call has a key."""
    entered, release = asyncio.Event(), asyncio.Event()

    async def wait(_: Any, context: ToolContext) -> str:
        context.progress("half", done=1, total=2)
        entered.set()
        await release.wait()
        return "done"

    daemon = await serve(make_tool("wait", wait))
    url = f"http://127.0.0.1:{daemon.http.port}/tools/wait"
    events = {"accept": "text/event-stream"}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        async with http.stream("POST", url, headers=events) as answer:
            lines = answer.aiter_lines()
            assert (await anext(lines), await anext(lines)) == (
                "event: progress",
                'data: {"message":"half","done":1.0,"total":2.0}',
            )
        await until(lambda: daemon.router.accepted == 0)
        keyed = asyncio.create_task(http.post(url, headers={"idempotency-key": "k"}))
        entered.clear()
        await entered.wait()
        repeat = asyncio.create_task(http.post(url, headers={"idempotency-key": "k"}))
        assert (await keyed).status_code == 409
        release.set()
        assert (await repeat).json() == "done"
