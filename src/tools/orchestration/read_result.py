"""The tool ``read_result``: pages through a retained result, or shapes it."""

from typing import Any, Final

import msgspec
from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...shaping import ShapedValue, ShapingError
from ..orchestration_context import LookupContext
from ..tool import Arguments, ToolOutput, tool
from .execute_tool import ShapingOptions
from .result_shaping import ResultShaping, apply, plan_shaping, shaping_notes

ROWS: Final = 100
"""The default number of rows per page."""
CHARS: Final = 20_000
"""The default number of characters per page of a text: some 5,000 tokens."""

_SHARE: Final = 3
"""A page takes at most a third of an answer, because it is sent as data and again, with escaped quotes, as text."""

_encode: Final = msgspec.json.encode


class ReadResultArguments(Arguments):
    """A retained result, the part of it to read, and how to shape it."""

    handle: str = Field(description="The handle, from the answer that reported it.")
    offset: int = Field(default=0, ge=0, description="Rows to skip; of a text, characters.")
    limit: int | None = Field(
        default=None, ge=1, description=f"Rows per page, default {ROWS}; of a text, characters, default {CHARS:,}."
    )
    options: ShapingOptions = None


@tool("read_result", read_only=True, open_world=False, idempotent=True)
async def read_result(arguments: ReadResultArguments, context: LookupContext) -> ToolOutput:
    """Read a retained result page by page, or shape it with `options`. Returns `rows` for a list, `text` for a text, or
    `value` for anything else, with `offset`, `total` and `next_offset`, which is null at the end.
    """
    shaping = plan_shaping(arguments.options)
    if shaping.to_file:
        problem = "read_result returns inline or summary; use execute_tool with read_result to write another file"
        fields = {"options.return_mode": problem}
        raise InvalidArgumentsError(f"options.return_mode: {problem}.", details={"fields": fields})
    shaped = await _shaped(await context.read_result(arguments.handle), shaping)
    notes = () if shaping.idle else shaping_notes(shaped, context)
    return ToolOutput(data=_page(arguments, shaping, shaped, context), blocks=notes)


def _page(
    arguments: ReadResultArguments, shaping: ResultShaping, shaped: ShapedValue, context: LookupContext
) -> dict[str, Any]:
    value = shaped.value
    one_value = shaping.plan.return_mode == "summary" or (shaping.plan.aggregate and not isinstance(value, list))
    rows = None if one_value else shaped.rows
    max_bytes = context.max_answer_bytes // _SHARE
    if rows is not None:
        return row_page(rows, arguments.offset, arguments.limit or ROWS, max_bytes)
    if isinstance(value, str):
        return text_page(value, arguments.offset, arguments.limit or CHARS, max_bytes)
    if shaping.plan.return_mode != "summary" and (size := len(_encode(value))) > max_bytes:
        # The answer would spill to a file, which exists already.
        problem = f"{size:,} bytes are too many for an answer; return_mode 'summary' describes it, at selects a part"
        raise InvalidArgumentsError(f"options: {problem}.", details={"fields": {"options": problem}})
    return {"value": value}


async def _shaped(value: Json, shaping: ResultShaping) -> ShapedValue:
    try:
        return await apply(shaping.plan, value)
    except ShapingError as error:
        fields = {"options": str(error)}
        raise InvalidArgumentsError(as_sentence(f"options: {error}"), details={"fields": fields}) from error


def row_page(rows: list[Json], offset: int, limit: int, max_bytes: int) -> dict[str, Any]:
    """At most ``limit`` rows from ``offset`` on, of at most ``max_bytes`` together, but at least one."""
    page: list[Json] = []
    for row in rows[offset : offset + limit]:
        max_bytes -= len(_encode(row)) + 1
        if max_bytes < 0 and page:
            break
        page.append(row)
    return {"rows": page, **_place(offset, len(page), len(rows))}


def text_page(text: str, offset: int, limit: int, max_bytes: int) -> dict[str, Any]:
    """At most ``limit`` characters from ``offset`` on, of at most ``max_bytes``, but at least one."""
    page = text[offset : offset + limit]
    while len(page) > 1 and len(_encode(page)) > max_bytes:
        page = page[: len(page) // 2]
    return {"text": page, **_place(offset, len(page), len(text))}


def _place(offset: int, count: int, total: int) -> dict[str, Any]:
    after = offset + count
    return {"offset": offset, "total": total, "next_offset": after if after < total else None}
