"""Sources on a running daemon: operations of an API are tools, and the daemon follows its configuration file."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.config import config_watcher
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import CallError
from toold.protocol.tool_call import LOCAL
from toold.serving import HttpServer

SECRET = "hunter2-hunter2"
BODY = {"content": {"application/json": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}
DOCUMENT = {
    "openapi": "3.0.0",
    "paths": {
        "/contacts/{id}": {"get": {"operationId": "getContact", "security": [{"bearer": []}]}},
        "/contacts": {"post": {"operationId": "addContact", "requestBody": BODY}},
    },
}


class Crm:
    """An API with two operations."""

    def __init__(self) -> None:
        self.url = ""
        self.secrets: list[str | None] = []
        self.added: list[Any] = []
        self.targets: list[str] = []

    async def answer(self, request: Request) -> Response:
        self.secrets.append(request.headers.get("authorization"))
        if request.method == "POST":
            self.added.append(await request.json())
            return JSONResponse({"message": "busy"}, 503)
        contact = request.path_params["id"]
        return JSONResponse({"id": contact}, 404 if contact.startswith("gone") else 200)

    async def page(self, request: Request) -> Response:
        self.targets.append(f"{request.url.path}?{request.url.query}")
        if "page" in request.query_params:
            return JSONResponse([{"id": 3}])
        link = f'</pages?page=2&locationId={request.query_params["locationId"]}>; rel="next"'
        return JSONResponse([{"id": 1}, {"id": 2}], headers={"Link": link})


@pytest.fixture
async def crm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Crm]:
    monkeypatch.setenv("CRM_TOKEN", SECRET)
    (tmp_path / "crm.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    crm = Crm()
    routes = [
        Route("/contacts", crm.answer, methods=["POST"]),
        Route("/contacts/{id}", crm.answer),
        Route("/pages", crm.page),
    ]
    server = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--crm")
    await server.start()
    crm.url = f"http://127.0.0.1:{server.port}"
    yield crm
    await server.close()


@pytest.fixture
def configure(tmp_path: Path, crm: Crm) -> Callable[..., None]:
    """Writes toold.toml with the source ``crm`` and further lines."""

    def write(*lines: str, source: bool = True, rate: str = "{ per_minute = 100, burst = 100 }") -> None:
        table = ["[sources.crm]", 'type = "openapi"', 'spec = "crm.json"', f'base_url = "{crm.url}"']
        table += ["allow_private = true", f"rate = {rate}", 'auth = { type = "bearer", env = "CRM_TOKEN" }']
        text = "\n".join([*lines, *(table if source else [])])
        (tmp_path / "toold.toml").write_text(text, encoding="utf-8")

    return write


@pytest.fixture
async def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configure: Any) -> AsyncIterator[Daemon]:
    """A daemon whose configuration has the source."""
    monkeypatch.setattr(config_watcher, "POLL_S", 0.05)
    configure()
    env = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(tmp_path / "state"), "TOOLD_SIMULATE": "1"}
    async with running(load_settings({}, env=env | {"TOOLD_AUTH": "0"}, cwd=tmp_path)) as daemon:
        yield daemon


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[MCPWebSocketClient]:
    async with MCPWebSocketClient(daemon.address().url) as client:
        yield client


async def named(client: MCPWebSocketClient, beginning: str = "crm_") -> list[str]:
    return [tool.name for tool in await client.list_tools() if tool.name.startswith(beginning)]


async def test_an_apis_operations_are_tools(client: MCPWebSocketClient, crm: Crm) -> None:
    """Listed with their schemas, validated, journalled, run and answered like all tools."""
    await until(lambda: _has(client, ["crm_addContact", "crm_getContact"]))
    result = await client.call("crm_getContact", {"id": "a-b"})
    assert result.structured == {"id": "a-b"}
    assert crm.secrets == [f"Bearer {SECRET}"]
    with pytest.raises(CallError) as wrong:
        await client.call("crm_getContact", {})
    assert wrong.value.code == "VALIDATION_ERROR"
    with pytest.raises(CallError) as failed:
        await client.call("crm_addContact", {"name": "Ann"})
    assert (failed.value.code, failed.value.executed, failed.value.retryable) == ("SERVICE_UNAVAILABLE", "maybe", False)
    assert crm.added == [{"name": "Ann"}]


async def test_the_daemon_follows_its_configuration_file(
    client: MCPWebSocketClient, daemon: Daemon, configure: Any, tmp_path: Path
) -> None:
    """Removed sources stop, added ones start; an invalid file is rejected with a message and changes nothing."""
    await until(lambda: _has(client, ["crm_addContact", "crm_getContact"]))
    configure(source=False)
    await until(lambda: _has(client, []))
    configure("max_running = 7")
    await until(lambda: _has(client, ["crm_addContact", "crm_getContact"]))
    assert daemon.settings.max_running == 7
    configure("max_running = 0")
    problem = "the new configuration is refused; the old one stays in effect: max_running (toold.toml)"
    await until(lambda: _told(daemon, problem))
    assert await named(client) == ["crm_addContact", "crm_getContact"]
    configure("max_running = 9")
    await until(lambda: _told(daemon, None))
    assert daemon.settings.max_running == 9


async def test_a_failing_source_keeps_its_tools(client: MCPWebSocketClient, daemon: Daemon, tmp_path: Path) -> None:
    """A document that becomes invalid keeps its tools; health and the list of sources show the problem."""
    await until(lambda: _has(client, ["crm_addContact", "crm_getContact"]))
    (tmp_path / "crm.json").write_text("{", encoding="utf-8")
    await until(lambda: _told(daemon, "source crm: its document cannot be used: crm.json is"))
    assert await named(client) == ["crm_addContact", "crm_getContact"]
    assert [state.state for state in daemon.sources.states] == ["failing"]
    assert (await client.call("echo", {"text": "here"})).text == "here"


async def _has(client: MCPWebSocketClient, names: list[str], beginning: str = "crm_") -> bool:
    return await named(client, beginning) == names


async def _told(daemon: Daemon, beginning: str | None) -> bool:
    problems = daemon.view.health(LOCAL)["problems"]
    return any(problem.startswith(beginning) for problem in problems) if beginning else not problems


async def test_a_batch_respects_the_rate_limit_of_its_source(
    daemon: Daemon, client: MCPWebSocketClient, crm: Crm, configure: Any
) -> None:
    """A batch of a hundred items, seven of which fail, sends one request per item: ten at once and then one every 20
    ms.
    """
    configure(rate="{ per_minute = 3000, burst = 10 }")
    await until(lambda: _rated(daemon, 10))
    await until(lambda: _has(client, ["crm_addContact", "crm_getContact"]))
    missing = {3, 14, 15, 26, 53, 58, 97}
    items = [{"id": f"gone-{number}" if number in missing else f"c-{number}"} for number in range(100)]
    batch = {"tool_name": "crm_getContact", "items": items, "options": {"concurrency": 10}}
    done = (await client.call("execute_batch", batch, timeout=120)).structured
    assert (done["succeeded"], done["failed"], done["unknown"], done["skipped"]) == (93, 7, 0, 0)
    assert {error["index"] for error in done["errors"]} == missing
    assert len(crm.secrets) == 100
    assert done["duration_ms"] >= 89 * 20


async def test_a_call_that_cannot_wait_for_the_rate_limit_is_rejected(
    daemon: Daemon, client: MCPWebSocketClient, crm: Crm, configure: Any
) -> None:
    """The call is rejected immediately with a retryable error, without a request to the source."""
    configure(rate="{ per_minute = 1, burst = 1 }")
    await until(lambda: _rated(daemon, 1))
    await until(lambda: _has(client, ["crm_addContact", "crm_getContact"]))
    await client.call("crm_getContact", {"id": "a"})
    with pytest.raises(CallError) as refused:
        await client.call("crm_getContact", {"id": "b"}, timeout=20)
    assert (refused.value.code, refused.value.executed, refused.value.retryable) == ("RATE_LIMITED", "no", True)
    assert refused.value.retry_after_ms is not None
    assert 0 < refused.value.retry_after_ms <= 60_000
    assert len(crm.secrets) == 1


async def _rated(daemon: Daemon, burst: int) -> bool:
    rate = daemon.settings.sources["crm"].rate
    return rate is not None and rate.burst == burst


async def test_a_list_is_read_page_by_page(
    client: MCPWebSocketClient, crm: Crm, configure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also through ``execute_tool`` with options; a bound argument is masked in the link, and sent with each page."""
    monkeypatch.setenv("CRM_LOCATION", "location-4711")
    listing = {"type": "array", "items": {"type": "object"}}
    operation = {
        "operationId": "list",
        "parameters": [{"name": "locationId", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": listing}}}},
    }
    document = {"openapi": "3.0.0", "servers": [{"url": crm.url}], "paths": {"/pages": {"get": operation}}}
    (tmp_path / "pages.json").write_text(json.dumps(document), encoding="utf-8")
    table = ["[sources.paged]", 'type = "openapi"', 'spec = "pages.json"', "allow_private = true"]
    configure(*table, "[sources.paged.bind]", 'locationId = { env = "CRM_LOCATION" }')
    await until(lambda: _has(client, ["paged_list"], "paged_"))
    first = await client.call("execute_tool", {"tool_name": "paged_list", "options": {"limit": 1}})
    assert first.structured == [{"id": 1}]
    response = first.metadata.response
    assert response is not None
    assert response.next_page is not None
    assert response.headers["link"] == '</pages?page=2&locationId=[bound]>; rel="next"'
    assert f"repeat the call with next_page = '{response.next_page}'" in first.text
    second = await client.call("paged_list", {"next_page": response.next_page})
    assert (second.structured, second.metadata.response) == ([{"id": 3}], None)
    assert crm.targets == ["/pages?locationId=location-4711", "/pages?page=2&locationId=location-4711"]
