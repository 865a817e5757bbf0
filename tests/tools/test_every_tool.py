"""Every tool rejects wrong arguments by name, and reports a missing key or an unreachable vendor.

The arguments are derived from each tool's schema; ``GOOD`` has those that a schema alone does not determine.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pytest
from toold.cli.argument_schema import items_of, types_of
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    ErrorCode,
    InvalidArgumentsError,
    NotFoundError,
    ServiceUnavailableError,
)
from toold.protocol.tool_call import ToolInfo
from toold.tools import Tool, bind, load_registry, simulated_tools

FILE: Final = "notes.txt"
"""A file in the workspace. The value of every string argument, so that paths exist."""

GOOD: Final[dict[str, dict[str, Any]]] = {
    "echo": {"text": "Hello"},
    "kimi_chat_with_tools": {"messages": "Why?"},
    "complete": {"messages": [{"role": "user", "content": "Why?"}]},
    "embed": {"model": "embedding-3", "input": "Why?"},
    "smart_file_query": {"question": "Why?", "file_path": FILE},
    "consensus": {"prompt": "Why?", "models": ["auto", "glm-4.6"]},
    "sim_effect": {"text": "once"},
    "execute_tool": {"tool_name": "echo", "args": {"text": "a"}},
    "execute_batch": {"tool_name": "echo", "items": [{"text": "a"}]},
    "execute_pipeline": {"steps": [{"id": "one", "tool_name": "echo", "args": {"text": "a"}}]},
    "describe_tools": {"names": ["echo"]},
    "execute_code": {"code": "return 1"},
}

TOOLS: Final = [
    *(tool for tool in load_registry().tools if tool.source == "toold"),
    *simulated_tools(Path("sim_effect.log")),
]


def good(tool: Tool) -> dict[str, Any]:
    """The required arguments of a tool, with valid values."""
    schema = tool.info.input_schema
    if tool.name in GOOD:
        return GOOD[tool.name]
    return {name: sample(schema["properties"][name], schema) for name in schema.get("required", ())}


def sample(part: dict[str, Any], root: dict[str, Any]) -> Any:
    """A value that matches a part of a schema."""
    part = next(iter(part.get("anyOf", [part])))
    if "$ref" in part:
        part = root["$defs"][part["$ref"].rpartition("/")[2]]
    if "enum" in part:
        return part["enum"][0]
    match part.get("type"):
        case "string":
            return FILE
        case "integer" | "number":
            return part.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [sample(dict(items_of(part, root)), root)] * part.get("minItems", 1)
        case "object":
            return {name: sample(part["properties"][name], root) for name in part.get("required", ())}
        case kind:
            pytest.fail(f"no sample of {kind}: put a good call of the tool into GOOD")


class Wrong(NamedTuple):
    """A call that must be rejected."""

    how: str
    field: str
    """The field that the error must name."""
    arguments: dict[str, Any]


OF_EACH_TYPE: Final[dict[str, Any]] = {"object": {"no": 1}, "array": [[]], "integer": 7, "string": "no"}


def wrong_calls(tool: Tool) -> Iterator[Wrong]:
    """Omits each required argument, gives each argument a wrong type, and adds an unknown argument."""
    schema = tool.info.input_schema
    for name in schema.get("required", ()):
        yield Wrong("missing", name, {key: value for key, value in good(tool).items() if key != name})
    for name, part in schema.get("properties", {}).items():
        taken = types_of(part, schema)
        taken |= {"integer"} if "number" in taken else set()
        for other in [kind for kind in OF_EACH_TYPE if kind not in taken][:1]:
            yield Wrong(f"is-{other}", name, good(tool) | {name: OF_EACH_TYPE[other]})
    yield Wrong("surplus", "no_such_argument", good(tool) | {"no_such_argument": 1})


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_arguments_are_bound_or_rejected_by_name(tool: Tool) -> None:
    """The required arguments suffice; each wrong call is rejected with the tool and the field in the message."""
    bind(tool, good(tool))
    for wrong in wrong_calls(tool):
        with pytest.raises(InvalidArgumentsError) as caught:
            bind(tool, wrong.arguments)
        assert caught.value.message.startswith(f"{tool.name}: "), wrong
        assert wrong.field in caught.value.message, wrong
        assert any(name.partition(".")[0] == wrong.field for name in (caught.value.details or {})["fields"]), wrong


async def test_a_wrong_call_is_rejected_before_a_vendor_is_asked(serve: Any, workspace: Path) -> None:
    """Over the wire, one call per tool: ``VALIDATION_ERROR``, nothing executed, no request to a vendor."""
    served = await serve(workspace)
    known = {info.name for info in await served.client.list_tools()}
    for tool in TOOLS:
        if tool.name in known:
            with pytest.raises(InvalidArgumentsError) as caught:
                await served.client.call(tool.name, good(tool) | {"no_such_argument": 1})
            assert (caught.value.executed, caught.value.retryable) == ("no", False), tool.name
    assert {seen.operation for seen in served.simulator.requests} <= {"models"}  # the daemon itself lists the models


# --- without any key -------------------------------------------------------------------------------------------------


async def outcome(client: Any, info: ToolInfo, arguments: dict[str, Any]) -> CallError | Any:
    try:
        return await client.call(info.name, arguments, timeout=20)
    except CallError as error:
        return error


@pytest.mark.process
async def test_a_tool_without_its_provider_names_the_missing_key(serve: Any, workspace: Path) -> None:
    """Without any key, tools that ask no vendor work, and the others say which variable to set."""
    (workspace / FILE).write_text("Some notes.")
    served = await serve(workspace, KIMI_API_KEY="", GLM_API_KEY="", TOOLD_SIMULATE="false")
    arguments = {tool.name: good(tool) for tool in TOOLS}
    refused = set()
    for info in await served.client.list_tools():
        if info.name not in arguments:
            continue  # from another installed package
        answer = await outcome(served.client, info, arguments[info.name])
        if isinstance(answer, NotFoundError):
            assert not info.annotations.open_world_hint, info.name  # the id that it was given does not exist
        elif isinstance(answer, CallError):
            assert isinstance(answer, ServiceUnavailableError), (info.name, answer)
            assert "KIMI_API_KEY" in answer.message or "GLM_API_KEY" in answer.message, (info.name, answer)
            assert (answer.code, answer.executed, answer.retryable) == (ErrorCode.SERVICE_UNAVAILABLE, "no", False)
            refused.add(info.name)
        else:
            assert answer.metadata.provider_calls == 0, info.name
    reaching = {tool.name for tool in TOOLS if tool.annotations.open_world_hint and not tool.orchestration}
    assert reaching - refused == {"planner"}  # asks a model only if use_assistant_model is set
    assert refused <= reaching | {"glm_payload_preview"}  # it shows the request, which needs the provider


# --- with vendors that do not respond ---------------------------------------------------------------------------------

UNREACHABLE: Final = [
    next(tool for tool in TOOLS if tool.name == name)
    for name in ("chat", "consensus", "debug", "glm_web_search", "kimi_upload_files", "smart_file_query")
]
"""One tool per way of asking a vendor: a completion, several at once, a workflow's expert, a search, an upload,
an upload followed by a completion. The other tools use the same methods of the context."""


class Silence:
    """A server that accepts requests and never responds, except to the daemon's own request for the models."""

    def __init__(self) -> None:
        self.request_count = 0
        self._server: asyncio.Server
        self._heard = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._listen, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def settings(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return {"KIMI_BASE_URL": url, "GLM_BASE_URL": url}

    async def until(self, asked: int) -> None:
        async with self._heard, asyncio.timeout(30):
            await self._heard.wait_for(lambda: self.request_count >= asked)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while head := await reader.read(65536):
                if b"GET /models" in head:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif b" HTTP/1.1\r\n" in head:
                    async with self._heard:
                        self.request_count += 1
                        self._heard.notify_all()
        writer.close()


async def wait_until_permits_are_free(served: Any) -> None:
    """Wait until no call holds a permit of a provider."""
    async with asyncio.timeout(30):
        while True:
            providers = (await served.client.call("status")).structured["limits"]["providers"]
            if not any(provider["in_use"] for provider in providers.values()):
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("tool", UNREACHABLE, ids=lambda tool: tool.name)
async def test_a_vendor_that_is_down_fails_the_call(tool: Tool, serve: Any, workspace: Path) -> None:
    """The call fails with a retryable error, and reports no effect."""
    (workspace / FILE).write_text("Some notes.")
    served = await serve(workspace, KIMI_BASE_URL="http://127.0.0.1:1/", GLM_BASE_URL="http://127.0.0.1:1/")
    answer = await outcome(served.client, tool.info, good(tool))
    assert isinstance(answer, CallError)
    assert (answer.code, answer.executed, answer.retryable) == (ErrorCode.SERVICE_UNAVAILABLE, "no", True)
    assert "cannot be reached" in answer.message
    await wait_until_permits_are_free(served)


@pytest.mark.parametrize("tool", UNREACHABLE, ids=lambda tool: tool.name)
async def test_a_silent_vendor_does_not_block_a_call(tool: Tool, serve: Any, workspace: Path) -> None:
    """A call to a vendor that never responds ends at its deadline, and immediately when it is cancelled."""
    (workspace / FILE).write_text("Some notes.")
    async with Silence() as silence:
        served = await serve(workspace, **silence.settings)
        with pytest.raises(CallTimeoutError):
            await served.client.call(tool.name, good(tool), timeout=0.5)
        request = silence.request_count  # perhaps 0: on a busy machine the deadline may pass before the vendor is asked
        task = asyncio.create_task(served.client.call(tool.name, good(tool), timeout=60))
        await silence.until(request + 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_until_permits_are_free(served)
        log = (await served.client.call("toolcall_log_tail", {"tool": tool.name})).structured
        assert [row["outcome"] for row in log] == ["CANCELLED", "TIMEOUT"]
