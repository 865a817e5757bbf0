"""The tool ``execute_tool``: calls another tool and shapes its result."""

from typing import Annotated, Any

import msgspec
from pydantic import Field, WithJsonSchema

from ...protocol.error_codes import CallError, InvalidArgumentsError, ToolError, error_from_wire
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import MAX_TIMEOUT_S, Json, TextContent, ToolResult
from ...shaping import ShapedValue, ShapingError
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments, ToolOutput, tool
from .result_shaping import OPTIONS_SCHEMA, ResultShaping, apply, plan_shaping, retain_shaped, shaping_notes
from .run_limits import time_left

ShapingOptions = Annotated[dict[str, Any] | None, WithJsonSchema(dict(OPTIONS_SCHEMA))]


class ExecuteToolArguments(Arguments):
    """A tool, its arguments, and how its result is shaped."""

    tool_name: str
    args: dict[str, Any] = Field(default={}, description="The tool's arguments.")
    options: ShapingOptions = None


@tool("execute_tool", read_only=False, open_world=True, destructive=True, timeout_s=MAX_TIMEOUT_S, orchestration=True)
async def execute_tool(arguments: ExecuteToolArguments, context: OrchestrationContext) -> ToolOutput:
    """Call any tool and get only the part of its result that you need. `options` filter, sort and limit rows, select
    fields, or aggregate rows; `return_mode` returns a summary, or the handle of a file for read_result. Invalid options
    are reported before the tool runs.
    """
    shaping = plan_shaping(arguments.options)
    chosen = context.find_tool(arguments.tool_name)
    # Without a timeout of the caller, the tool's default; else a little less than the caller's, to report in time.
    timeout_s = time_left(MAX_TIMEOUT_S, context.remaining())() if context.has_explicit_timeout else None
    result = await context.call(chosen.name, arguments.args, name=chosen.name, timeout_s=timeout_s)
    if result.metadata.parts is not None:
        context.report_parts(result.metadata.parts)
    if result.metadata.response is not None:
        context.report_response(result.metadata.response)
    if result.error is not None:
        error = _as_own_error(result.error)
        if result.outputs:
            error.output = ToolOutput(data=result.structured, content=result.outputs)
        raise error
    return await _answer(result, shaping, context)


def _as_own_error(error: ToolError) -> CallError:
    """The called tool's error as this call's error: fields of its arguments get the prefix ``args``."""
    fields = (error.details or {}).get("fields")
    if isinstance(fields, dict):
        named = {f"args.{name}": message for name, message in fields.items()}
        error = msgspec.structs.replace(error, details={**(error.details or {}), "fields": named})
    return error_from_wire(error)


async def _answer(result: ToolResult, shaping: ResultShaping, context: OrchestrationContext) -> ToolOutput:
    value = result.value
    if shaping.idle:
        if all(isinstance(block, TextContent) for block in result.outputs):
            return ToolOutput(result.text, value)
        return ToolOutput(data=result.structured, content=result.outputs)
    try:
        shaped = await apply(shaping.plan, value)
    except ShapingError as error:
        raise await _unshaped(error, value, context) from error
    notes = (*shaping_notes(shaped, context), *_next_page_note(result))
    if shaping.to_file:
        return ToolOutput(data=await _retained(shaped, shaping, context), blocks=notes)
    return ToolOutput(shaped.value if isinstance(shaped.value, str) else None, shaped.value, notes)


def _next_page_note(result: ToolResult) -> tuple[TextContent, ...]:
    """The text that says how to get the next page. It follows the data, so shaping removes it."""
    response = result.metadata.response
    if response is None or response.next_page is None or len(result.outputs) < 2:
        return ()
    return tuple(block for block in result.outputs[-1:] if isinstance(block, TextContent))


async def _retained(shaped: ShapedValue, shaping: ResultShaping, context: OrchestrationContext) -> Json:
    try:
        return await retain_shaped(shaped, shaping, context)
    except CallError as error:
        message = f"{error.message} The tool has run; its shaped result is in details.result."
        details = {"result": shaped.value}
        raise type(error)(message, executed="yes", transient=False, details=details) from error


async def _unshaped(wrong: ShapingError, value: Json, context: OrchestrationContext) -> CallError:
    """The error if the tool ran but the options do not fit its result. The result is retained (decision 34)."""
    details: dict[str, Json] = {"fields": {"options": str(wrong)}}
    try:
        kept = await context.retain_result(value, value if isinstance(value, list) else None, "json")
    except CallError:
        details["result"] = value
        where = "its result is in details.result"
    else:
        details |= {"handle": kept.handle, "expires": kept.expires}
        where = f"its result is retained as {kept.handle}; read_result can shape it"
    message = f"{as_sentence(f'options: {wrong}')} The tool has run; {where}."
    return InvalidArgumentsError(message, executed="yes", details=details)
