"""The tables of docs/migrating.md about GoHighLevel-MCP: each row runs on a daemon, in the old and in the new form."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from click.testing import CliRunner
from tests.waiting import until
from toold.cli.command_line import toold
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError
from toold.tools import RateState

PAGE = (Path(__file__).parents[3] / "docs/migrating.md").read_text(encoding="utf-8")
PART = PAGE.partition("\n## From GoHighLevel-MCP\n")[2].partition("\n## ")[0]
API = {
    "openapi": "3.0.0",
    "info": {"title": "Contacts", "version": "1"},
    "servers": [{"url": "https://elsewhere.example"}],
    "paths": {
        "/contacts/{contactId}": {
            "get": {
                "operationId": "get-contact",
                "parameters": [
                    {"name": "contactId", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "locationId", "in": "query", "required": True, "schema": {"type": "string"}},
                    {"name": "Version", "in": "header", "required": True, "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "A contact."}},
            }
        }
    },
}
"""A part of HighLevel's documents, with the arguments that its operations share."""


def rows(heading: str) -> list[list[str]]:
    """The cells of each row of the table below a heading."""
    lines = PART.partition(f"\n### {heading}\n")[2].partition("\n### ")[0].splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) > 1, heading
    return [
        [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in table[1:]
    ]


def codes(cell: str) -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


async def outcome(client: MCPWebSocketClient, tool: str, arguments: Any) -> tuple[Any, CallError | None]:
    try:
        return (await client.call(tool, arguments)).structured, None
    except CallError as error:
        return None, error


def matches(shown: Any, answered: Any) -> bool:
    """Whether the answer has each shown part; ``…`` stands for any value."""
    if isinstance(shown, dict) and isinstance(answered, dict):
        return all(name in answered and matches(part, answered[name]) for name, part in shown.items())
    return shown in ("…", answered) and type(shown) is type(answered)


def check(cell: str, answered: Any, error: CallError | None, row: list[str]) -> None:
    """Compare an answer with its cell: JSON, or the code of an error and words of its message."""
    (shown, *_), words = codes(cell), cell.partition("`: ")[2]
    if re.fullmatch("[A-Z_]+", shown):
        assert error is not None, row
        assert (error.code, words in error.message) == (shown, True), (row, error.message)
    else:
        assert error is None, (row, error)
        assert matches(json.loads(shown), answered), (row, answered)


async def test_the_settings_on_the_page_provide_the_tools(
    serve: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each setting of the table is in the example, with which a daemon has the API's tools under their new names."""
    (text,) = re.findall(r"```toml\n(.+?)```", PART, re.DOTALL)
    (workspace / "toold.toml").write_text(text)
    (workspace / "contacts.json").write_text(json.dumps(API))
    settings = tomllib.loads(text)
    settings["bind"] = {"ghl_*": settings["bind"]["ghl_*"]}
    for before, now in rows("The API and its settings"):
        for path in codes(now):
            if re.fullmatch(r"[a-z_]+|(?:sources|bind)\..+", path):
                value: Any = settings
                for name in path.split("."):
                    assert name in value, before
                    value = value[name]
    assert {
        value["env"] for value in (settings["sources"]["ghl"]["auth"], settings["bind"]["ghl_*"]["locationId"])
    } == {name for before, _ in rows("The API and its settings")[:2] for name in codes(before)}

    monkeypatch.setenv("GHL_API_KEY", "key")
    monkeypatch.setenv("GHL_LOCATION_ID", "location-1")
    client = (await serve(workspace, TOOLD_CONFIG=str(workspace / "toold.toml"))).client

    async def is_listed() -> bool:
        return "ghl_get-contact" in {tool.name for tool in await client.list_tools()}

    await until(is_listed)
    (tool,) = (await client.call("describe_tools", {"names": ["ghl_get-contact"]})).structured
    assert tool["inputSchema"]["properties"].keys() == {"contactId"}
    for before, sent, now in rows("Tools"):
        tool_name, _, arguments = codes(before)[0].partition(" ")
        _, error = await outcome(client, tool_name, json.loads(arguments))
        if sent.startswith("works"):
            assert error is None, (before, error)
        else:
            check(sent, None, error, [before])
        if now != "the same":
            tool_name, _, arguments = codes(now)[0].partition(" ")
            assert (await outcome(client, tool_name, json.loads(arguments)))[1] is None, now


def test_the_commands_on_the_page_exist() -> None:
    """Each command for clients has a help text."""
    commands = {
        " ".join(code.split()[1:])
        for heading in ("Clients", "The API and its settings")
        for _, now in rows(heading)
        for code in codes(now)
        if code.startswith("toold ")
    }
    assert len(commands) >= 6
    for command in commands:
        answer = CliRunner().invoke(toold, [*command.split(), "--help"])
        assert answer.exit_code == 0, command


async def test_options_shape_as_on_the_page(serve: Any, workspace: Path) -> None:
    """Each row: the answer to the old options, and for each replacement that it is accepted."""
    client = (await serve(workspace)).client
    for value, options, answer, before in rows("Shaping"):
        called = {"tool_name": "echo", "args": {"value": json.loads(codes(value)[0])}}
        answered, error = await outcome(client, "execute_tool", {**called, "options": json.loads(codes(options)[0])})
        check(answer, answered, error, [options])
        for code in codes(before):
            if code.startswith("{") and "rows stay rows" not in before:
                _, error = await outcome(client, "execute_tool", {**called, "options": json.loads(code)})
                assert error is None, (code, error)


async def test_pipelines_run_as_on_the_page(serve: Any, workspace: Path) -> None:
    """Each row: the result of the old arguments, and for each replacement that it succeeds."""
    client = (await serve(workspace)).client
    for arguments, result, before in rows("Pipelines"):
        answered, error = await outcome(client, "execute_pipeline", json.loads(codes(arguments)[0]))
        check(result, answered and answered["result"], error, [arguments])
        if result.startswith("`null`: "):
            assert answered["stop_reason"], arguments
            assert "`a.m` is missing" in answered["stop_reason"]
        elif answered:
            assert answered["success"], (arguments, answered)
        for code in codes(before):
            if code.startswith("{"):
                replaced, error = await outcome(client, "execute_pipeline", json.loads(code))
                assert error is None, (code, error)
                assert replaced["success"], (code, replaced)


async def test_batches_run_as_on_the_page(serve: Any, workspace: Path) -> None:
    """Each row: the parts of the answer to the old arguments."""
    client = (await serve(workspace)).client
    for arguments, answer, _ in rows("Batches"):
        answered, error = await outcome(client, "execute_batch", json.loads(codes(arguments)[0]))
        check(answer, answered, error, [arguments])


async def test_the_fields_of_answers_are_where_the_page_says(serve: Any, workspace: Path) -> None:
    """Each path of the table exists in an answer of its tool."""
    client = (await serve(workspace)).client
    echo = {"tool_name": "echo", "args": {"value": [{"n": 1}]}}
    shaped = await client.call("execute_tool", {**echo, "options": {"return_mode": "file"}})
    assert len(shaped.outputs) == 2
    steps = [
        {"id": "each", **echo, "for_each": [1, 0], "filter": "{{item}}"},
        {"id": "fail", "tool_name": "echo", "args": {"text": "{{each[0][0].n}}"}, "when": "each IS_NOT_NULL"},
    ]
    failed = await client.call("execute_pipeline", {"steps": steps, "return": {"each": ["[*][*].n", "m"]}})
    batch = {"tool_name": "echo", "items": [{"text": "a"}, {"text": 1}], "options": {"result_mode": "detail"}}
    answers = {
        "execute_tool": msgspec.to_builtins({"structured": shaped.structured, "metadata": shaped.metadata}),
        "execute_pipeline": {"structured": failed.structured},
        "execute_batch": {"structured": (await client.call("execute_batch", batch)).structured},
    }
    answers["execute_batch"]["structured"]["rate"] = dict.fromkeys(RateState.__struct_fields__, 0)
    for tool, _, now in rows("Answers"):
        for path in codes(now):
            if path.startswith(("structured.", "metadata.")):
                value: Any = answers[codes(tool)[0]]
                for name in re.findall(r"[a-z_]+|[0-9]+", path):
                    value = value[int(name)] if name.isdigit() else value[name]
    with pytest.raises(CallError) as raised:
        await client.call("execute_tool", {"tool_name": "echo", "args": {"txt": 1}})
    assert {"code", "message", "executed", "retryable"} <= set(msgspec.to_builtins(raised.value.to_tool_error()))


async def test_the_addresses_on_the_page_are_served(serve: Any, workspace: Path) -> None:
    """Those of the new column are; those of the old one are only if they are in both."""
    url = (await serve(workspace)).http_url.removesuffix("/")
    served = {code for _, now in rows("Clients") for code in codes(now) if code.startswith("/")}
    old = {code.split()[1] for before, _ in rows("Clients") for code in codes(before) if re.match("[A-Z]+ /", code)}
    assert served == {"/mcp", "/sse", "/healthz"}
    async with httpx.AsyncClient(verify=False) as client:
        assert {(await client.get(url + path)).status_code for path in served} <= {200, 401, 405}
        assert {(await client.get(url + path)).status_code for path in old - served} == {404}
