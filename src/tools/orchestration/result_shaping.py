"""Shaping of results: options become a plan, and a shaped result is returned or retained as a file."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.json_pieces import decode_in_pieces
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json, TextContent
from ...shaping import ShapedValue, ShapingPlan, paths_of, plan, weight
from ..orchestration_context import LookupContext, OrchestrationContext
from ..retained_results import RESULT_FORMATS, ResultFormat

_MAX_INLINE_VALUES: Final = 2_000
"""A value with more nested values than this is shaped in a thread. Shaping this many takes about two milliseconds."""
_MAX_INLINE_EVALUATIONS: Final = 10_000
"""The limit, for shaping without a thread, of nested values times conditions: each condition is evaluated per row."""
_MAX_INLINE_BYTES: Final = 1024**2
"""The limit, for shaping without a thread, of bytes times conditions: each condition may search all texts."""
_MAX_INLINE_PARSE_CHARS: Final = 64 * 1024
"""Texts with more characters than this are parsed as JSON in a thread."""

_OPENING: Final = re.compile(r"\s*[\[{]")

OPTIONS_SCHEMA: Final[Mapping[str, Any]] = {
    "anyOf": [
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "at": {
                    "type": "string",
                    "description": "Path of the list, such as data.items; required for one of several, or in a record.",
                },
                "filter": {"type": "string", "description": "Rows to keep, such as: status = open AND votes > 5."},
                "sort": {"type": "array", "items": {"type": "string"}, "description": "Fields; -field for descending."},
                "limit": {"type": "number", "description": "Maximum number of rows."},
                "select_fields": {"type": "array", "items": {"type": "string"}, "description": "Fields to keep."},
                "aggregate": {
                    "type": "object",
                    "description": "Replaces rows: count (true); sum, avg, min, max, unique, group_by (paths).",
                },
                "return_mode": {"enum": ["inline", "summary", "file"], "description": "file returns a handle."},
                "format": {"enum": list(RESULT_FORMATS), "description": "The file's format; default json."},
            },
        },
        {"type": "null"},
    ],
    "default": None,
    "description": "Applied to the result in this order: filter, sort, limit, select_fields, aggregate.",
}
"""The options' JSON Schema for tools; ``plan_shaping`` validates them."""


class ResultShaping(msgspec.Struct, frozen=True, kw_only=True):
    """Validated shaping options."""

    plan: ShapingPlan
    file_format: ResultFormat = "json"

    @property
    def idle(self) -> bool:
        """Whether the options change nothing."""
        return self.plan == ShapingPlan()

    @property
    def to_file(self) -> bool:
        return self.plan.return_mode == "file"


def plan_shaping(options: Any, name: str = "options") -> ResultShaping:
    """Validate the options of docs/shaping.md, and ``format``. ``name`` is the caller's name for the options.

    Raises:
        InvalidArgumentsError: ``details.fields`` has every invalid option with its error.
    """
    given = options.get("format") if isinstance(options, dict) else None
    rest = {key: value for key, value in options.items() if key != "format"} if isinstance(options, dict) else options
    wrong: dict[str, str] = {}
    if given is not None and given not in RESULT_FORMATS:
        wrong[f"{name}.format"] = f"should be one of {', '.join(RESULT_FORMATS)}"
    elif given is not None and rest.get("return_mode") != "file":
        wrong[f"{name}.format"] = "applies to files; set return_mode to 'file'"
    try:
        planned = plan(rest, name)
    except InvalidArgumentsError as error:
        if not wrong or error.details is None:
            raise
        wrong = {**error.details["fields"], **wrong}
    if wrong:
        message = "; ".join(f"{place}: {problem}" for place, problem in wrong.items())
        raise InvalidArgumentsError(as_sentence(message), details={"fields": wrong})
    return ResultShaping(plan=planned, file_format=given or "json")


async def apply(planned: ShapingPlan, value: Json) -> ShapedValue:
    """Shape a value, in a thread if the value or the filter is large. JSON text is parsed first, because many tools
    return objects and lists only as text.

    Raises:
        ShapingError: as raised by ``ShapingPlan.apply``.
    """
    if planned != ShapingPlan():
        value = await parse_json_text(value)
    conditions = sum(1 for _ in paths_of(planned.filter)) if planned.filter else 1
    max_bytes = _MAX_INLINE_BYTES // conditions
    if is_large(value, min(_MAX_INLINE_VALUES, _MAX_INLINE_EVALUATIONS // conditions)) or (
        planned.filter and weight(value, max_bytes) > max_bytes
    ):
        return await asyncio.to_thread(planned.apply, value)
    return planned.apply(value)


def shaping_notes(shaped: ShapedValue, context: LookupContext) -> tuple[TextContent, ...]:
    """Report the shaping in the answer's metadata. Also returns the report as text, because most clients do not show
    metadata to models.
    """
    context.report_shaping(msgspec.to_builtins(shaped.report))
    return (TextContent(sentence),) if (sentence := shaped.report.sentence) else ()


async def parse_json_text(value: Json) -> Json:
    """The object or list in a JSON text, parsed in a thread if it is long; any other value unchanged."""
    if not isinstance(value, str) or not _OPENING.match(value):
        return value
    return await asyncio.to_thread(_decoded, value) if len(value) > _MAX_INLINE_PARSE_CHARS else _decoded(value)


def _decoded(text: str) -> Json:
    try:
        parsed: Json = decode_in_pieces(text.encode(), max_values=None)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    return parsed


def is_large(value: Json, max_values: int = _MAX_INLINE_VALUES) -> bool:
    """Whether a value contains more than ``max_values`` values, so that shaping it would block the loop."""
    waiting, seen = [value], 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            seen += len(item)
            if seen > max_values:
                return True
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return False


MAX_SIBLING_BYTES: Final = 64 * 1024
"""The maximum size of the fields next to the list of rows, such as a cursor or a total."""
_ANSWER_DIVISOR: Final = 8
"""These fields take at most 1/8 of an answer; otherwise the answer with the rows' handle could spill to a file."""
_FIELD_BYTES: Final = 16
"""The JSON overhead of a field besides its name and value."""


async def retain_shaped(
    shaped: ShapedValue, shaping: ResultShaping, context: OrchestrationContext, *, name: str | None = None
) -> dict[str, Json]:
    """Retain the shaped value and return its handle. The field ``context`` has the other fields of the object that
    contained the list; ``omitted`` counts those that are too large.

    Raises:
        CallError: as raised by ``OrchestrationContext.retain_result``.
    """
    kept = await context.retain_result(shaped.value, shaped.rows, shaping.file_format, name=name)
    extra = _sibling_fields(shaped.siblings, min(MAX_SIBLING_BYTES, context.max_answer_bytes // _ANSWER_DIVISOR))
    return {**msgspec.to_builtins(kept), **extra}


def _sibling_fields(siblings: Mapping[str, Any], max_bytes: int) -> dict[str, Json]:
    """As many of the fields as fit into ``max_bytes``, the smallest first."""
    sizes = {name: len(name) + _FIELD_BYTES + weight(value, max_bytes) for name, value in siblings.items()}
    taken = set()
    for name in sorted(sizes, key=sizes.__getitem__):
        if sizes[name] > max_bytes:
            break
        max_bytes -= sizes[name]
        taken.add(name)
    fields: dict[str, Json] = {}
    if taken:
        fields["context"] = {name: value for name, value in siblings.items() if name in taken}
    if omitted := len(siblings) - len(taken):
        fields["omitted"] = omitted
    return fields
