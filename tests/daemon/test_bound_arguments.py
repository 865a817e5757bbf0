"""Bound arguments on a running daemon: where their values must not appear."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse
from toold.daemon.config.setting_sources import SettingsError
from toold.daemon.lifecycle import running
from toold.daemon.observability.logging_setup import hide, set_up_logging
from toold.protocol.error_codes import ProviderError
from toold.protocol.tool_call import Annotations
from toold.serving import HttpServer
from toold.tools import Arguments, JsonSchema, Tool, ToolContext, ToolOutput, ToolRegistry, ValueMask, load_registry
from websockets.asyncio.client import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CANARY = "canary/5d81c0 é"
"""With characters that JSON and addresses write in other ways."""
PLAIN = "2021-07-28"
CONFIG = f"""
[bind."crm_*"]
locationId = {{env = "CRM_LOCATION"}}
version = "{PLAIN}"
"""
FORMS = [CANARY, json.dumps(CANARY)[1:-1], "canary%2F5d81c0", "canary\\/5d81c0", "5d81c0"]


class Crm(Arguments):
    locationId: str  # noqa: N815 - as an API has it
    version: str = ""
    do: str = "answer"


seen: list[dict[str, Any]] = []
"""The arguments that the tools received."""


async def crm(arguments: Crm | dict[str, Any], context: ToolContext) -> Any:
    value = arguments if isinstance(arguments, dict) else arguments.model_dump()
    seen.append(value)
    location, do = value["locationId"], value.get("do", "answer")
    context.progress(f"looking at {location}")
    for piece in (location[:8], location[8:]):
        context.stream(piece)
    structlog.get_logger("crm").warning("asked", location=location, all=[value])
    logging.getLogger("crm").warning("asked at %s", location)
    match do:
        case "raise":
            raise ValueError(f"no {location}")
        case "refuse":
            answer = {"answer": {"url": f"https://crm.example/{location}?v={PLAIN}", "id": location}}
            raise ProviderError(f"The CRM answered: no location {location}, v {PLAIN}.", executed="no", details=answer)
        case "much":
            return [{"id": location, "n": n, "more": "x" * 100} for n in range(200)]
    return ToolOutput(None, {"locationId": location, "version": PLAIN, "path": f"/at/{location}/x"})


SCHEMA = JsonSchema(
    {
        "type": "object",
        "properties": {
            "locationId": {"type": "string"},
            "version": {"type": "string"},
            "do": {"type": "string"},
        },
        "required": ["locationId"],
    }
)


def tools() -> list[Tool]:
    writes = Annotations(False, False, False, True)
    own = [tool for tool in load_registry().tools if tool.name in {"execute_batch", "describe_tools"}]
    return [
        *own,
        Tool("crm_model", "By a model.", Crm, crm, writes),
        Tool("crm_schema", "By a schema.", SCHEMA, crm, writes),
    ]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that the process logs, at its most talkative; as it was before, after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    before = structlog.get_config()
    stream = io.StringIO()
    set_up_logging("json", "debug", stream=stream)
    yield stream
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    hide(ValueMask([]))


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write ``toold.toml``; the variable that it names is set."""
    monkeypatch.setenv("CRM_LOCATION", CANARY)
    monkeypatch.setattr("toold.daemon.lifecycle.load_registry", lambda *_, **__: ToolRegistry(tools()))
    seen.clear()

    def write(text: str) -> None:
        (tmp_path / "toold.toml").write_text(text)

    return write


def start(settings_with: Any, **env: str) -> Any:
    quick = {"TOOLD_SIMULATE": "true", "TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http"}
    more = {"TOOLD_AUTH": "false", "TOOLD_GRACE_PERIOD_S": "0.1", "TOOLD_AUDIT_CONTENT": "full"}
    return running(settings_with(**quick | more | env))


async def conversation(port: int, *calls: tuple[str, dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """All that came by the wire, and the answers to the calls."""
    heard, answers = [], []
    async with connect(f"ws://127.0.0.1:{port}/") as socket:
        await socket.send(json.dumps({"op": "hello", "toolset": "full", "features": ["stream", "ack", "resume"]}))
        heard.append(await socket.recv())
        await socket.send(json.dumps({"op": "list_tools"}))
        heard.append(await socket.recv())
        for number, (name, arguments) in enumerate(calls):
            call = {"op": "call_tool", "request_id": f"r{number}", "name": name, "arguments": arguments}
            await socket.send(json.dumps(call))
            async with asyncio.timeout(20):
                while not heard or '"call_tool_res"' not in str(heard[-1]):
                    heard.append(await socket.recv())
            answers.append(json.loads(heard[-1]))
            heard.append("")
    return "\n".join(map(str, heard)), answers


def everything_in(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())


async def test_a_bound_value_reaches_the_tool_and_nothing_else(
    settings_with: Any, configure: Callable[[str], None], state_dir: Path, log: io.StringIO
) -> None:
    """No listing, description, frame, error, progress, batch, audit row, journal, result file or log line has it."""
    configure(CONFIG)
    doings = ("answer", "raise", "refuse", "much")
    async with start(settings_with, TOOLD_SPILL_BYTES="4096") as daemon:
        calls: list[tuple[str, dict[str, Any]]] = [
            (name, {"do": do}) for name in ("crm_model", "crm_schema") for do in doings
        ]
        calls += [(name, {"do": "x", "locationId": "y"}) for name in ("crm_model", "crm_schema")]
        calls += [("crm_model", {"do": 5}), ("describe_tools", {"names": ["crm_model", "crm_schema"]})]
        items = [{"do": do} for do in doings]
        calls.append(
            ("execute_batch", {"tool_name": "crm_model", "items": items, "options": {"result_mode": "detail"}})
        )
        wire, answers = await conversation(daemon.websocket.port, *calls)
        address = f"http://127.0.0.1:{daemon.http.port}/mcp/full"
        async with httpx.AsyncClient(trust_env=False, timeout=20, verify=False) as client:
            for method, params in (
                ("tools/list", {}),
                ("tools/call", {"name": "crm_model", "arguments": {"do": "refuse"}}),
                ("tools/call", {"name": "crm_schema", "arguments": {"locationId": "mine"}}),
            ):
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                wire += (await client.post(address, json=message)).text
            wire += (await client.get(f"http://127.0.0.1:{daemon.http.port}/metrics")).text
        listing = [tool.info for tool in daemon.registry.tools if tool.name.startswith("crm_")]
    assert [item["locationId"] for item in seen].count(CANARY) == len(seen) >= 10
    assert {item["version"] for item in seen} == {PLAIN}
    assert answers[0]["structured"] == {"locationId": "[bound]", "version": "[bound]", "path": "/at/[bound]/x"}
    assert answers[3]["metadata"]["spilled"] is True
    assert "locationId is set by the daemon's operator" in answers[8]["error"]["message"]
    assert "locationId" not in str(listing)
    written, logged = everything_in(state_dir), log.getvalue()
    assert "asked at [bound]" in logged
    for form in FORMS:
        assert form not in wire
        assert form.encode() not in written
        assert form not in logged


async def crm_api(scope: Any, receive: Any, send: Any) -> None:
    """An API that echoes its request, truncated, and refuses some requests with that text."""
    request = Request(scope, receive)
    requests.append(dict(request.query_params))
    reply = {"asked": str(request.url), "location": request.query_params["locationId"]}
    refuse = request.query_params.get("do") == "refuse"
    await JSONResponse({"message": f"{'x' * 480} {reply['location']}", **reply}, 401 if refuse else 200)(
        scope, receive, send
    )


requests: list[dict[str, str]] = []


async def test_a_sources_bound_value_reaches_its_api_and_nothing_else(
    settings_with: Any, configure: Callable[[str], None], state_dir: Path, tmp_path: Path, log: io.StringIO
) -> None:
    """Answers and errors of the API do not show the value; a tool whose schema rejects the value is omitted."""
    requests.clear()
    server = HttpServer(crm_api, "127.0.0.1", 0, "--api")
    await server.start()
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("locationId", "do")]
    odd = [{"name": "locationId", "in": "query", "schema": {"type": "integer"}}]
    paths = {
        "/find": {"get": {"operationId": "find", "parameters": parameters}},
        "/odd": {"get": {"operationId": "odd", "parameters": odd}},
    }
    (tmp_path / "crm.json").write_text(json.dumps({"openapi": "3.0.0", "info": {"title": "CRM"}, "paths": paths}))
    configure(
        f'[sources.crm]\ntype = "openapi"\nspec = "crm.json"\nbase_url = "http://127.0.0.1:{server.port}"\n'
        'allow_private = true\nretries = 0\nbind = {locationId = {env = "CRM_LOCATION"}}\n'
    )
    try:
        async with start(settings_with) as daemon:
            async with asyncio.timeout(20):
                await daemon.sources.loaded()
            names = [tool.name for tool in daemon.registry.tools if tool.source == "crm"]
            calls: list[tuple[str, dict[str, Any]]] = [("crm_find", {}), ("crm_find", {"do": "refuse"})]
            wire, answers = await conversation(daemon.websocket.port, *calls)
            problems = daemon.registry.problems
    finally:
        await server.close()
    assert names == ["crm_find"]
    assert ["the tool 'crm_odd' is omitted" in problem for problem in problems] == [True]
    assert [item["locationId"] for item in requests] == [CANARY, CANARY]
    assert answers[0]["structured"]["location"] == "[bound]"
    assert answers[1]["error"]["code"] == "PERMISSION_DENIED"
    written, logged = everything_in(state_dir), log.getvalue()
    for form in [*FORMS, CANARY[:8], "canary"]:
        assert form not in wire
        assert form.encode() not in written
        assert form not in logged


async def test_an_unsuitable_value_prevents_the_start(settings_with: Any, configure: Callable[[str], None]) -> None:
    """The error names the place and the tool, and has no value; so does one that cannot be had."""
    configure('[bind.crm_model]\nversion = ["9999"]\n')
    with pytest.raises(SettingsError) as refused:
        async with start(settings_with):
            pass
    assert "[bind.'crm_model'] version: the value does not match the schema of this argument of crm_model" in str(
        refused.value
    )
    assert "9999" not in str(refused.value)
    configure('[bind.crm_model]\nversion = {env = "NOT_SET_HERE"}\n')
    with pytest.raises(SettingsError, match="the variable NOT_SET_HERE is not set"):
        async with start(settings_with):
            pass


async def test_bindings_follow_the_configuration(
    settings_with: Any, configure: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another value holds from the next call on, a bad one is refused and the old one stays, and none gives the
    argument back to the caller.
    """
    configure(CONFIG)
    call: list[tuple[str, dict[str, Any]]] = [("crm_schema", {})]
    async with start(settings_with) as daemon:
        await conversation(daemon.websocket.port, *call)
        monkeypatch.setenv("CRM_LOCATION", "another one")
        assert (await daemon.reload()).reloaded == ("the values of bound arguments",)
        await conversation(daemon.websocket.port, *call)
        configure("[bind.crm_schema]\nlocationId = 5\n")
        with pytest.raises(SettingsError, match="does not match the schema"):
            await daemon.reload()
        await conversation(daemon.websocket.port, *call)
        configure("")
        assert set((await daemon.reload()).reloaded) == {"bind"}
        await conversation(daemon.websocket.port, ("crm_schema", {"locationId": "mine"}))
    assert [item["locationId"] for item in seen] == [CANARY, "another one", "another one", "mine"]
