"""The tool ``execute_code``: programs and their calls."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    InvalidArgumentsError,
    NotFoundError,
    OverCapacityError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from toold.protocol.input_request import CallPausedError, InputRequest
from toold.protocol.tool_call import Metadata, PartsOutcome, TextContent, Timings, ToolResult
from toold.sandbox import (
    Program,
    ProgramFailedError,
    ProgramModule,
    ProgramOutput,
    ProgramRefusedError,
    ProgramStoppedError,
    SandboxMissingError,
    ToolFailedError,
)
from toold.tools import bind
from toold.tools.orchestration import execute_code
from toold.tools.orchestration.execute_code import ProgramCalls

pytestmark = pytest.mark.process


@pytest.fixture
def calls(context: Any, tools: Any) -> ProgramCalls:
    """The calls of a program that can call ``get``."""
    context.tools = {"get": tools("get")}
    return ProgramCalls(context, context.toolset_view.stubs)


def result(**fields: Any) -> ToolResult:
    """The result of a child call."""
    return ToolResult(Metadata(1.0, Timings()), **fields)


async def test_a_call_returns_its_data_or_its_text(calls: ProgramCalls, context: Any) -> None:
    """Each child call has a unique name, even if the tool is the same."""
    context.results = {
        "1.get": result(outputs=(TextContent("words"),), structured={"a": 1}),
        "2.get": result(outputs=(TextContent("words"),)),
    }
    assert await calls("tools", "get", {"path": "x"}) == {"a": 1}
    assert await calls("tools", "get", {"path": "y"}) == "words"
    assert [(name, tool) for name, tool, *_ in context.called] == [("1.get", "get"), ("2.get", "get")]
    assert [(made["tool"], made["ok"]) for made in calls.made] == [("get", True), ("get", True)]


async def test_a_tool_error_is_raised_in_the_program(calls: ProgramCalls, context: Any) -> None:
    """The exception has the error code, and the list of calls contains it."""
    context.results = {"1.get": result(error=NotFoundError("No such thing.").to_tool_error())}
    with pytest.raises(ToolFailedError) as raised:
        await calls("tools", "get", {"path": "x"})
    assert (raised.value.code, raised.value.message) == ("NOT_FOUND", "No such thing.")
    assert [(made["ok"], made["code"]) for made in calls.made] == [(False, "NOT_FOUND")]


async def test_a_tool_that_waits_for_a_person_raises_in_the_program(
    calls: ProgramCalls, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program cannot wait, and the error says so."""

    async def pauses(*_: Any, **__: Any) -> None:
        raise CallPausedError((InputRequest("q", "question", text="?"),), 0.0)

    monkeypatch.setattr(context, "call", pauses)
    with pytest.raises(ToolFailedError, match="get waits for a person"):
        await calls("tools", "get", {"path": "x"})
    assert [made["code"] for made in calls.made] == ["TOOL_EXECUTION_ERROR"]


async def test_failed_parts_raise_in_the_program(calls: ProgramCalls, context: Any) -> None:
    """A pipeline or batch whose parts did not all succeed is an exception, which names the call with its answer."""
    parts = PartsOutcome("unknown", "of 2 items 1 unknown")
    context.results = {"1.get": ToolResult(Metadata(1.0, Timings(), parts=parts), (), {"unknown": 1})}
    with pytest.raises(
        ToolFailedError, match=r"of 2 items 1 unknown\. call_result with call_id 'call-1/1.get'"
    ) as raised:
        await calls("tools", "get", {"path": "x"})
    assert raised.value.code == "OUTCOME_UNKNOWN"
    assert [(made["ok"], made["code"]) for made in calls.made] == [(False, "OUTCOME_UNKNOWN")]


async def test_an_unknown_function_is_not_called(calls: ProgramCalls, context: Any) -> None:
    """The error is TOOL_NOT_FOUND, and no child call is made."""
    with pytest.raises(ToolFailedError, match=r"TOOL_NOT_FOUND: There is no tools.nope"):
        await calls("tools", "nope", {})
    assert (context.called, calls.made) == ([], [])


LACKING: Final = {
    "class inheritance": "class A:\n    pass\nclass B(A):\n    pass",
    "own exception classes": "class Mine(Exception):\n    pass",
    "yield": "def f():\n    yield 1",
    "del": "x = {1: 2}\ndel x[1]",
    "async with": "async def f():\n    async with x:\n        pass",
    "async for": "async def f():\n    async for y in x:\n        pass",
    "except*": "try:\n    pass\nexcept* ValueError:\n    pass",
    "property": "class A:\n    @property\n    def x(self):\n        return 1",
    "classmethod": "class A:\n    @classmethod\n    def x(cls):\n        return 1",
    "staticmethod": "class A:\n    @staticmethod\n    def x():\n        return 1",
    "issubclass": "issubclass(int, object)",
    "callable": "callable(len)",
    "globals": "globals()",
    "dir": "dir()",
    "input": "input()",
    "key=str.lower": "sorted('aB', key=str.lower)",
    "re.sub with a function": "import re\nre.sub('a', lambda m: m.group(), 'a')",
    "json.dumps with default": "import json\njson.dumps({}, default=str)",
    "asyncio.create_task": "import asyncio\nasync def f():\n    pass\nasyncio.create_task(f())",
    "asyncio.wait_for": "import asyncio\nasync def f():\n    pass\nawait asyncio.wait_for(f(), 1)",
    "asyncio.Semaphore": "import asyncio\nasyncio.Semaphore(1)",
    "No files": "open('/etc/hostname')",
    "network": "import socket",
    "environment": "import os\nos.environ['PATH']",
}
"""The limitations of the sandbox's Python that the description lists, each with a program that demonstrates it."""

UNTOLD: Final = {"binascii", "os", "posixpath", "sys"}
"""Modules that the description omits. Only parts of os and sys exist; binascii and posixpath are redundant."""


def modules_in(description: str) -> list[str]:
    """The modules that the description lists."""
    listed = " ".join(description.split()).partition("It has the modules ")[2].partition(", parts of")[0]
    return listed.split(", ")


@pytest.fixture
async def sandboxed(context: Any) -> AsyncIterator[Any]:
    """A context whose sandbox is closed after the test."""
    yield context
    await context.sandbox.close()


@pytest.fixture
def ask(sandboxed: Any, tools: Any) -> Any:
    """Return a function that runs a program with the tools ``get`` and ``put``."""
    sandboxed.tools = {name: tools(name) for name in ("get", "put")}

    async def run(code: str, **arguments: Any) -> dict[str, Any]:
        bound = bind(execute_code, {"code": code, **arguments})
        answer: dict[str, Any] = await execute_code.function(bound, sandboxed)
        return answer

    return run


def answered(value: Any) -> ToolResult:
    """The result of a child call."""
    return ToolResult(Metadata(1.0, Timings()), (TextContent("words"),), value)


async def test_the_answer_contains_value_output_and_calls(ask: Any, sandboxed: Any) -> None:
    """Each call is a child call with a unique name."""
    sandboxed.results = {"1.get": answered({"rows": [1, 2]})}
    answer = await ask("found = await tools.get(path='x')\nprint('seen')\nreturn len(found['rows'])")
    assert (answer["value"], answer["stdout"], answer["truncated"]) == (2, "seen\n", False)
    ((name, tool, arguments, _),) = sandboxed.called
    assert (name, tool, arguments) == ("1.get", "get", {"path": "x"})
    assert [(call["tool"], call["ok"]) for call in answer["calls"]] == [("get", True)]
    assert "stdout_handle" not in answer


async def test_long_output_is_truncated_and_retained(ask: Any, sandboxed: Any) -> None:
    """The answer contains a handle for the whole output, or the reason why the output could not be written."""
    code = "print('a' * 20000 + 'b' * 20000)"
    answer = await ask(code)
    assert answer["truncated"]
    assert "bytes omitted" in answer["stdout"]
    assert sandboxed.kept[answer["stdout_handle"]] == "a" * 20000 + "b" * 20000 + "\n"
    sandboxed.disk_refuses = ServiceUnavailableError("The disk is full.")
    refused = await ask(code)
    assert (refused["truncated"], refused["stdout_lost"]) == (True, "The disk is full.")


async def test_an_error_found_before_the_run_is_an_argument_error(ask: Any, sandboxed: Any) -> None:
    """The error about an unknown tool gives the line and a similar name."""
    with pytest.raises(
        InvalidArgumentsError, match=r"code: line 1: there is no tools.gett; did you mean 'get'\?$"
    ) as reported:
        await ask("await tools.gett(path='x')")
    assert reported.value.executed == "no"
    assert "code" in (reported.value.details or {})["fields"]
    assert sandboxed.called == []


async def test_an_exception_of_the_program_includes_output_and_calls(ask: Any, sandboxed: Any) -> None:
    """The error contains the printed output and the calls, and says whether calls may have had effects."""
    sandboxed.results = {"1.put": answered({})}
    with pytest.raises(ToolExecutionError, match=r"ZeroDivisionError: division by zero\n  line 3") as failed:
        await ask("print('before')\nawait tools.put(value=1)\n1 / 0")
    assert failed.value.executed == "maybe"
    details = failed.value.details or {}
    assert details["stdout"] == "before\n"
    assert [call["tool"] for call in details["calls"]] == ["put"]
    with pytest.raises(ToolExecutionError) as nothing:
        await ask("1 / 0")
    assert nothing.value.executed == "no"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SandboxMissingError(), ServiceUnavailableError),
        (ProgramRefusedError(["line 1: x"]), InvalidArgumentsError),
        (ProgramStoppedError("code", "too long"), InvalidArgumentsError),
        (ProgramStoppedError("time", "over"), CallTimeoutError),
        (ProgramStoppedError("memory", "too much"), ToolExecutionError),
        (ProgramFailedError("KeyError: 1"), ToolExecutionError),
    ],
)
async def test_sandbox_errors_have_codes(ask: Any, sandboxed: Any, error: Exception, expected: type[CallError]) -> None:
    """Each error of the sandbox becomes the matching CallError."""

    class Ends:
        async def run(self, *_: Any, **__: Any) -> None:
            raise error

        async def close(self) -> None:
            """Nothing to close."""

    sandboxed.sandbox = Ends()
    with pytest.raises(expected) as raised:
        await ask("return 1")
    assert str(error) in str(raised.value)


async def test_a_busy_sandbox_is_a_retryable_error(ask: Any, sandboxed: Any) -> None:
    """The error is OVER_CAPACITY with a retry delay, and the program is not started."""
    begun = asyncio.Semaphore(0)

    async def never(*_: Any) -> None:
        begun.release()
        await asyncio.Event().wait()

    modules = {"crm": execute_code_module()}
    waiting = [asyncio.ensure_future(blocked(sandboxed.sandbox, modules, never, owner)) for owner in ("ada", "bob")]
    for _ in waiting:
        await begun.acquire()
    with pytest.raises(OverCapacityError, match="2 programs are running") as raised:
        await ask("return 1", timeout_s=0.3)
    assert raised.value.retry_after_ms
    for one in waiting:
        one.cancel()
    await asyncio.wait(waiting)


def execute_code_module() -> Any:
    """A module with a function that a program can await."""
    return ProgramModule(frozenset({"wait"}), lambda _chosen: "async def wait() -> None: ...")


async def blocked(sandbox: Any, modules: Any, call: Any, owner: str) -> None:
    """Run a program that occupies its worker."""
    await sandbox.run(Program("await crm.wait()", modules), call, ProgramOutput(), timeout_s=60, owner=owner)


@pytest.mark.parametrize("what", LACKING)
async def test_the_described_limitations_exist(ask: Any, what: str) -> None:
    """The test fails if the engine supports more, so that the description can be updated."""
    assert what in execute_code.description.replace("\n", " ")
    with pytest.raises(CallError):
        await ask(LACKING[what])


async def test_the_description_names_the_available_modules(ask: Any) -> None:
    """Each listed module can be imported, and no other module of the standard library can."""
    named = modules_in(execute_code.description)
    assert len(named) > 15
    assert (await ask(f"import {', '.join(named)}\nreturn 1"))["value"] == 1
    tries = "".join(
        f"try:\n    import {one}\n    found.append('{one}')\nexcept ImportError: pass\n"
        for one in sys.stdlib_module_names
    )
    found = (await ask(f"found = []\n{tries}return found"))["value"]
    assert set(found) == {*named, *UNTOLD}
