"""The tool ``execute_code``: runs a program in the sandbox that calls tools as functions."""

import time
from functools import partial
from typing import Any

from pydantic import Field

from ...protocol.error_codes import (
    CallError,
    CallTimeoutError,
    ErrorCode,
    Executed,
    InvalidArgumentsError,
    OverCapacityError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from ...protocol.input_request import CallPausedError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...sandbox import (
    MAX_CODE_BYTES,
    Program,
    ProgramModule,
    ProgramOutput,
    ProgramRefusedError,
    ProgramStoppedError,
    SandboxBusyError,
    SandboxError,
    SandboxMissingError,
    ToolFailedError,
)
from ..orchestration_context import OrchestrationContext
from ..stubs import StubSet
from ..tool import Arguments, tool
from .call_retry import cannot_wait, parts_error
from .pipeline_arguments import MAX_TIMEOUT_S, TIMEOUT_S, Seconds
from .run_limits import CALL_MARGIN_S, time_left


class ProgramCalls:
    """The calls of one program. ``made`` lists them in the order of their start: tool, ms, ok, and code on failure."""

    def __init__(self, context: OrchestrationContext, stubs: StubSet) -> None:
        self.made: list[dict[str, Json]] = []
        self._context = context
        self._stubs = stubs

    async def __call__(self, module: str, function: str, given: dict[str, Any]) -> Json:
        """Call the tool behind a function, and return its data, or its text if it has no data.

        Raises:
            ToolFailedError: the tool returned an error, or a report on parts that did not all succeed.
        """
        tool = self._stubs.tool_name(module, function)
        if tool is None:
            raise ToolFailedError(ErrorCode.TOOL_NOT_FOUND.value, f"There is no {module}.{function}.")
        began = time.monotonic()
        entry: dict[str, Json] = {"tool": tool, "ms": 0.0, "ok": False}
        self.made.append(entry)
        name = f"{len(self.made)}.{tool}"
        try:
            arguments = self._stubs.arguments(tool, given)
            result = await self._context.call(tool, arguments, name=name)
        except CallPausedError as pause:
            waits = cannot_wait(tool, pause)
            entry["code"] = waits.code
            raise ToolFailedError(waits.code, waits.message) from None
        finally:
            entry["ms"] = round((time.monotonic() - began) * 1000, 3)
        error = result.error or parts_error(tool, result, f"{self._context.call_id}/{name}")
        if error is not None:
            entry["code"] = error.code
            raise ToolFailedError(error.code, error.message)
        entry["ok"] = True
        return result.value


RETRY_AFTER_MS = 1_000
"""The retry delay after no worker was free."""


class ExecuteCodeArguments(Arguments):
    """A program and its timeout."""

    code: str = Field(min_length=1, description=f"Python, at most {MAX_CODE_BYTES // 1024} KiB.")
    timeout_s: Seconds = Field(default=TIMEOUT_S, description="For the whole program, including its calls.")


@tool(
    "execute_code",
    read_only=False,
    open_world=True,
    destructive=True,
    timeout_s=MAX_TIMEOUT_S + CALL_MARGIN_S,
    orchestration=True,
)
async def execute_code(arguments: ExecuteCodeArguments, context: OrchestrationContext) -> dict[str, Any]:
    """Run a Python program that calls tools as functions, `await module.function(argument=...)`, with the names that
    read_stubs shows; these modules need no import. End it with a top-level `return` of plain data.
    `asyncio.gather(...)` runs several calls at once; `gather_settled(...)` returns {ok, value} or {ok, code, error} for
    each. A tool that fails raises ToolError, with `code` and `message`. Returns value, stdout, and the calls with their
    durations.

    The sandbox's Python lacks: class inheritance, own exception classes, yield, del, async with, async for, except*,
    property, classmethod, staticmethod, issubclass, callable, globals, dir, input, key=str.lower, re.sub with a
    function, json.dumps with default, asyncio.create_task, asyncio.wait_for, asyncio.Semaphore. It has the modules
    asyncio, base64, bisect, collections, copy, csv, dataclasses, datetime, decimal, functools, hashlib, itertools,
    json, math, pathlib, random, re, time, tomllib, typing, unicodedata, parts of os and sys, and no others. No files,
    network or environment. Runs share no state.
    """
    stubs = context.toolset_view.stubs
    calls, output = ProgramCalls(context, stubs), ProgramOutput()
    left = time_left(arguments.timeout_s, context.remaining())
    program = Program(arguments.code, _modules(stubs))
    try:
        value = await context.sandbox.run(program, calls, output, timeout_s=left(), owner=context.principal.name)
    except SandboxError as error:
        raise _as_call_error(error, {"calls": calls.made, **await _printed(output, context)}) from error
    return {"value": value, "calls": calls.made, **await _printed(output, context)}


def _modules(stubs: StubSet) -> dict[str, ProgramModule]:
    return {
        name: ProgramModule(frozenset(functions), partial(stubs.source_for, name))
        for name, functions in stubs.modules.items()
    }


async def _printed(output: ProgramOutput, context: OrchestrationContext) -> dict[str, Json]:
    """The program's output, with the middle cut out if it is long, and the handle of the whole output if stored."""
    printed: dict[str, Json] = {"stdout": output.shown, "truncated": output.truncated}
    if output.truncated:
        try:
            kept = await context.retain_result(output.text, None, "json", name="stdout")
        except CallError as error:
            printed["stdout_lost"] = error.message
        else:
            printed["stdout_handle"] = kept.handle
    return printed


def _as_call_error(error: SandboxError, progress: dict[str, Json]) -> CallError:
    """The call's error; ``details`` has the output and the calls up to the error."""
    executed: Executed = "maybe" if progress["calls"] else "no"
    match error:
        case SandboxMissingError():
            return ServiceUnavailableError(str(error), transient=False)
        case SandboxBusyError():
            return OverCapacityError(str(error), retry_after_ms=RETRY_AFTER_MS)
        case ProgramRefusedError():
            return InvalidArgumentsError(as_sentence(f"code: {error}"), details={"fields": {"code": str(error)}})
        case ProgramStoppedError(bound="code"):
            message = str(error)
            return InvalidArgumentsError(f"code: {message}", details={"fields": {"code": message}})
        case ProgramStoppedError(bound="time"):
            return CallTimeoutError(str(error), executed=executed, details={"bound": "time", **progress})
        case ProgramStoppedError():
            return ToolExecutionError(str(error), executed=executed, details={"bound": error.bound, **progress})
    return ToolExecutionError(str(error), executed=executed, details=progress)
