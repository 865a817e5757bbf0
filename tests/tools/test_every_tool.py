"""What holds for every tool there is: wrong arguments are told by name, and a missing key by the key.

Nothing here knows a tool but for a good call of it, and that only where its schema alone does not make one.
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
"""Lies in the workspace of those that run; stands for every string, so that paths lead somewhere."""

GOOD: Final[dict[str, dict[str, Any]]] = {
    "echo": {"text": "Hello"},
    "kimi_chat_with_tools": {"messages": "Why?"},
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
    """Arguments that the tool takes, no more than it must have."""
    schema = tool.info.input_schema
    if tool.name in GOOD:
        return GOOD[tool.name]
    return {name: sample(schema["properties"][name], schema) for name in schema.get("required", ())}


def sample(part: dict[str, Any], root: dict[str, Any]) -> Any:
    """A value that a part of a schema takes."""
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
    """A call that must be refused."""

    tool: Tool
    how: str
    field: str
    """That the refusal must name."""
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.tool.name}-{self.field}-{self.how}"


OF_EACH_TYPE: Final[dict[str, Any]] = {"object": {"no": 1}, "array": [[]], "integer": 7, "string": "no"}


def wrong_calls(tool: Tool) -> Iterator[Wrong]:
    """Each required argument left out, each argument of another type, and one that the tool has not."""
    schema = tool.info.input_schema
    for name in schema.get("required", ()):
        yield Wrong(tool, "missing", name, {key: value for key, value in good(tool).items() if key != name})
    for name, part in schema.get("properties", {}).items():
        taken = types_of(part, schema)
        taken |= {"integer"} if "number" in taken else set()
        for other in [kind for kind in OF_EACH_TYPE if kind not in taken][:1]:
            yield Wrong(tool, f"is-{other}", name, good(tool) | {name: OF_EACH_TYPE[other]})
    yield Wrong(tool, "surplus", "no_such_argument", good(tool) | {"no_such_argument": 1})


WRONG: Final = [wrong for tool in TOOLS for wrong in wrong_calls(tool)]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_good_call_is_taken(tool: Tool) -> None:
    """What the schema asks for is enough; else the wrong calls below would show nothing."""
    bind(tool, good(tool))


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_argument_is_refused_by_its_name(wrong: Wrong) -> None:
    """The message begins with the tool and names the field, and ``details.fields`` has it."""
    with pytest.raises(InvalidArgumentsError) as caught:
        bind(wrong.tool, wrong.arguments)
    assert caught.value.message.startswith(f"{wrong.tool.name}: ")
    assert wrong.field in caught.value.message
    assert any(name.partition(".")[0] == wrong.field for name in (caught.value.details or {})["fields"])


async def test_a_wrong_call_is_answered_over_the_wire_and_asks_nobody(serve: Any, workspace: Path) -> None:
    """With ``VALIDATION_ERROR``, nothing executed, nothing sent to a vendor, whatever the tool."""
    served = await serve(workspace)
    known = {info.name for info in await served.client.list_tools()}
    for wrong in WRONG:
        if wrong.tool.name in known:
            with pytest.raises(InvalidArgumentsError) as caught:
                await served.client.call(wrong.tool.name, wrong.arguments)
            assert (caught.value.executed, caught.value.retryable) == ("no", False), wrong
    assert {seen.operation for seen in served.simulator.requests} <= {"models"}  # which the daemon lists by itself


# --- without any key -------------------------------------------------------------------------------------------------


async def outcome(client: Any, info: ToolInfo, arguments: dict[str, Any]) -> CallError | Any:
    try:
        return await client.call(info.name, arguments, timeout=20)
    except CallError as error:
        return error


async def test_a_tool_whose_provider_is_absent_says_which_key_is_missing(serve: Any, workspace: Path) -> None:
    """Of all that are listed where no vendor has a key: what asks nobody works, and what would ask says what to set."""
    (workspace / FILE).write_text("Some notes.")
    served = await serve(workspace, KIMI_API_KEY="", GLM_API_KEY="", TOOLD_SIMULATE="false")
    arguments = {tool.name: good(tool) for tool in TOOLS}
    refused = set()
    for info in await served.client.list_tools():
        if info.name not in arguments:
            continue  # of a package that happens to be installed
        answer = await outcome(served.client, info, arguments[info.name])
        if isinstance(answer, NotFoundError):
            assert not info.annotations.open_world_hint, info.name  # the id that it was given is nobody's
        elif isinstance(answer, CallError):
            assert isinstance(answer, ServiceUnavailableError), (info.name, answer)
            assert "KIMI_API_KEY" in answer.message or "GLM_API_KEY" in answer.message, (info.name, answer)
            assert (answer.code, answer.executed, answer.retryable) == (ErrorCode.SERVICE_UNAVAILABLE, "no", False)
            refused.add(info.name)
        else:
            assert answer.metadata.provider_calls == 0, info.name
    reaching = {tool.name for tool in TOOLS if tool.annotations.open_world_hint and not tool.orchestration}
    assert reaching - refused == {"planner"}  # its last step asks nobody, unless it is told to
    assert refused <= reaching | {"glm_payload_preview"}  # it shows what would be sent, and needs to know where to


# --- with vendors that do not answer ---------------------------------------------------------------------------------

REACHING: Final = [tool for tool in TOOLS if tool.annotations.open_world_hint and not tool.orchestration]


class Silence:
    """A server that takes what it is sent and never answers; but for its models, which the daemon asks by itself."""

    def __init__(self) -> None:
        self.asked = 0
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
            await self._heard.wait_for(lambda: self.asked >= asked)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while head := await reader.read(65536):
                if b"GET /models" in head:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif b" HTTP/1.1\r\n" in head:
                    async with self._heard:
                        self.asked += 1
                        self._heard.notify_all()
        writer.close()


def reaching(tool: Tool) -> dict[str, Any]:
    """A good call that asks a vendor."""
    return good(tool) | ({"use_assistant_model": True} if tool.name == "planner" else {})


async def nothing_is_held(served: Any) -> None:
    """Wait until every permit of the vendors is back."""
    async with asyncio.timeout(30):
        while True:
            providers = (await served.client.call("status")).structured["limits"]["providers"]
            if not any(provider["in_use"] for provider in providers.values()):
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("tool", REACHING, ids=lambda tool: tool.name)
async def test_a_vendor_that_is_down_is_an_error_of_the_call(tool: Tool, serve: Any, workspace: Path) -> None:
    """Where nobody listens the call fails, may be tried again, and has had no effect; no success tells of it."""
    (workspace / FILE).write_text("Some notes.")
    served = await serve(workspace, KIMI_BASE_URL="http://127.0.0.1:1/", GLM_BASE_URL="http://127.0.0.1:1/")
    answer = await outcome(served.client, tool.info, reaching(tool))
    assert isinstance(answer, CallError)
    assert (answer.code, answer.executed, answer.retryable) == (ErrorCode.SERVICE_UNAVAILABLE, "no", True)
    assert "cannot be reached" in answer.message
    await nothing_is_held(served)


@pytest.mark.parametrize("tool", REACHING, ids=lambda tool: tool.name)
async def test_a_vendor_that_is_silent_holds_no_call(tool: Tool, serve: Any, workspace: Path) -> None:
    """A call to a vendor that never answers ends at its deadline, and at once where it is cancelled."""
    (workspace / FILE).write_text("Some notes.")
    async with Silence() as silence:
        served = await serve(workspace, **silence.settings)
        with pytest.raises(CallTimeoutError):
            await served.client.call(tool.name, reaching(tool), timeout=0.5)
        asked = silence.asked
        assert asked
        task = asyncio.create_task(served.client.call(tool.name, reaching(tool), timeout=60))
        await silence.until(asked + 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await nothing_is_held(served)
        log = (await served.client.call("toolcall_log_tail", {"tool": tool.name})).structured
        assert [row["outcome"] for row in log] == ["CANCELLED", "TIMEOUT"]
