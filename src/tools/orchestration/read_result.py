"""``read_result``: a page of a result that is kept as a file, or what is made of it."""

from typing import Any, Final

import msgspec
from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...shaping import ShapingError
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool
from .execute_tool import ShapingOptions
from .result_shaping import ResultShaping, apply, plan_shaping

ROWS: Final = 100
"""Of a page, where the caller does not say."""
CHARS: Final = 20_000
"""The same, of a text: some 5,000 tokens."""

_SHARE: Final = 3
"""A page may have this part of an answer: it stands in it as data, and as text, whose quotes are escaped."""

_encode: Final = msgspec.json.encode


class ReadResultArguments(Arguments):
    """Which result, which part of it, and what to make of it."""

    handle: str = Field(description="From the answer that named it.")
    offset: int = Field(default=0, ge=0, description="Rows to leave out; of a text, characters.")
    limit: int | None = Field(
        default=None, ge=1, description=f"Rows of the page, {ROWS} if absent; of a text, characters, {CHARS:,}."
    )
    options: ShapingOptions = None


@tool("read_result", read_only=True, open_world=False, idempotent=True)
async def read_result(arguments: ReadResultArguments, context: LookupContext) -> dict[str, Any]:
    """Read a result that was kept as a file, page by page, or shape it again by `options`. Answers `rows` (of a text
    `text`, of what is no list `value`) with `offset`, `total` and the `next_offset`, null at the end.
    """
    shaping = plan_shaping(arguments.options)
    if shaping.to_file:
        told = "read_result answers inline or summary; execute_tool with read_result writes another file"
        raise InvalidArgumentsError(f"options.return_mode: {told}.", details={"fields": {"options.return_mode": told}})
    rows, value = await _shaped(await context.read_result(arguments.handle), shaping, context)
    room = context.max_answer_bytes // _SHARE
    if rows is not None:
        return row_page(rows, arguments.offset, arguments.limit or ROWS, room)
    if isinstance(value, str):
        return text_page(value, arguments.offset, arguments.limit or CHARS, room)
    if shaping.plan.return_mode != "summary" and (size := len(_encode(value))) > room:
        # It would be kept as a file, as which it is there already.
        told = f"{size:,} bytes are too many for an answer; return_mode 'summary' says what there is, at takes a part"
        raise InvalidArgumentsError(f"options: {told}.", details={"fields": {"options": told}})
    return {"value": value}


async def _shaped(value: Json, shaping: ResultShaping, context: LookupContext) -> tuple[list[Json] | None, Json]:
    try:
        shaped = await apply(shaping.plan, value)
    except ShapingError as error:
        fields = {"options": str(error)}
        raise InvalidArgumentsError(as_sentence(f"options: {error}"), details={"fields": fields}) from error
    if not shaping.idle:
        context.report_shaping(msgspec.to_builtins(shaped.report))
    one_value = shaping.plan.return_mode == "summary" or (shaping.plan.aggregate and not isinstance(shaped.value, list))
    return (None if one_value else shaped.rows), shaped.value


def row_page(rows: list[Json], offset: int, limit: int, room: int) -> dict[str, Any]:
    """So many rows from ``offset`` on, as long as they have at most ``room`` bytes together; one in any case."""
    page: list[Json] = []
    for row in rows[offset : offset + limit]:
        room -= len(_encode(row)) + 1
        if room < 0 and page:
            break
        page.append(row)
    return {"rows": page, **_place(offset, len(page), len(rows))}


def text_page(text: str, offset: int, limit: int, room: int) -> dict[str, Any]:
    """So many characters from ``offset`` on, as long as they have at most ``room`` bytes; one in any case."""
    page = text[offset : offset + limit]
    while len(page) > 1 and len(_encode(page)) > room:
        page = page[: len(page) // 2]
    return {"text": page, **_place(offset, len(page), len(text))}


def _place(offset: int, count: int, total: int) -> dict[str, Any]:
    after = offset + count
    return {"offset": offset, "total": total, "next_offset": after if after < total else None}
