"""``execute_tool``: one call of another tool, with what is asked made of its result."""

from typing import Annotated, Any

import msgspec
from pydantic import Field, WithJsonSchema

from ...protocol.error_codes import CallError, InvalidArgumentsError, ToolError, error_from_wire
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import MAX_TIMEOUT_S, Json, TextContent, ToolResult
from ...shaping import ShapedValue, ShapingError
from ..orchestration_context import OrchestrationContext
from ..tool import Answer, Arguments, tool
from .result_shaping import OPTIONS_SCHEMA, ResultShaping, apply, filed, plan_shaping
from .run_limits import time_left

ShapingOptions = Annotated[dict[str, Any] | None, WithJsonSchema(dict(OPTIONS_SCHEMA))]


class ExecuteToolArguments(Arguments):
    """A tool, its arguments, and what to make of its result."""

    tool_name: str
    args: dict[str, Any] = Field(default={}, description="The tool's arguments.")
    options: ShapingOptions = None


@tool("execute_tool", read_only=False, open_world=True, destructive=True, timeout_s=MAX_TIMEOUT_S, orchestration=True)
async def execute_tool(arguments: ExecuteToolArguments, context: OrchestrationContext) -> Answer:
    """Call any tool and get only what you need of its result. `options` keep rows by a filter, sort and limit them,
    pick fields, or make figures of them; `return_mode` answers a summary, or the handle of a file for read_result.
    Wrong options are told before the tool runs.
    """
    shaping = plan_shaping(arguments.options)
    chosen = context.find_tool(arguments.tool_name)
    # Its own time, or where the caller named one, that, and a little less: what was done is to be told in time.
    timeout_s = time_left(MAX_TIMEOUT_S, context.remaining())() if context.has_explicit_timeout else None
    result = await context.call(chosen.name, arguments.args, name=chosen.name, timeout_s=timeout_s)
    if result.error is not None:
        raise _as_ours(result.error)
    return await _answer(result, shaping, context)


def _as_ours(error: ToolError) -> CallError:
    """The called tool's error is this call's: what it says of its arguments, it says of ``args`` here."""
    fields = (error.details or {}).get("fields")
    if isinstance(fields, dict):
        named = {f"args.{name}": told for name, told in fields.items()}
        error = msgspec.structs.replace(error, details={**(error.details or {}), "fields": named})
    return error_from_wire(error)


async def _answer(result: ToolResult, shaping: ResultShaping, context: OrchestrationContext) -> Answer:
    value = result.value
    if shaping.idle:
        others = tuple(block for block in result.outputs if not isinstance(block, TextContent))
        return Answer(result.text, result.structured if others else value, others)
    try:
        shaped = await apply(shaping.plan, value)
    except ShapingError as error:
        raise await _unshaped(error, value, context) from error
    context.report_shaping(msgspec.to_builtins(shaped.report))
    if shaping.to_file:
        return await _filed(shaped, shaping, context)
    return Answer(shaped.value if isinstance(shaped.value, str) else None, shaped.value)


async def _filed(shaped: ShapedValue, shaping: ResultShaping, context: OrchestrationContext) -> Answer:
    try:
        return Answer(data=await filed(shaped, shaping, context))
    except CallError as error:
        message = f"{error.message} The tool has run; details.result has its shaped result."
        details = {"result": shaped.value}
        raise type(error)(message, executed="yes", transient=False, details=details) from error


async def _unshaped(wrong: ShapingError, value: Json, context: OrchestrationContext) -> CallError:
    """The tool has run, and its result does not have what the options need: it is not lost for that (decision 34)."""
    details: dict[str, Json] = {"fields": {"options": str(wrong)}}
    try:
        kept = await context.retain_result(value, value if isinstance(value, list) else None, "json")
    except CallError:
        details["result"] = value
        where = "details.result has its result"
    else:
        details |= {"handle": kept.handle, "expires": kept.expires}
        where = f"its result is kept as {kept.handle}: read_result shapes it"
    message = f"{as_sentence(f'options: {wrong}')} The tool has run; {where}."
    return InvalidArgumentsError(message, executed="yes", details=details)
