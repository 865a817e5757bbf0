"""Shaping of results: options become a plan, and a shaped result is returned or retained as a file."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...shaping import ShapedValue, ShapingPlan, paths_of, plan, weight
from ..orchestration_context import OrchestrationContext
from ..retained_results import RESULT_FORMATS, ResultFormat

_LARGE: Final = 2_000
"""Values within a value, from which on it is shaped in a thread: some two milliseconds' work."""
_TESTS_AT_ONCE: Final = 10_000
"""The same, of a filter with many conditions: each is asked of each row."""
_BYTES_AT_ONCE: Final = 1024**2
"""The same, of the texts that each condition may look through."""
_TEXT_AT_ONCE: Final = 64 * 1024
"""The same, of a text that is read as JSON."""

_OPENING: Final = re.compile(r"\s*[\[{]")

OPTIONS_SCHEMA: Final[Mapping[str, Any]] = {
    "anyOf": [
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "at": {"type": "string", "description": "Path of the list, such as data.items; needed if several."},
                "filter": {"type": "string", "description": "Rows to keep, such as: status = open AND votes > 5."},
                "sort": {"type": "array", "items": {"type": "string"}, "description": "Fields; -field descends."},
                "limit": {"type": "number", "description": "At most so many rows."},
                "select_fields": {"type": "array", "items": {"type": "string"}, "description": "Fields to keep."},
                "aggregate": {
                    "type": "object",
                    "description": "Figures for rows: count (true); sum, avg, min, max, unique, group_by (paths).",
                },
                "return_mode": {"enum": ["inline", "summary", "file"], "description": "file answers a handle."},
                "format": {"enum": list(RESULT_FORMATS), "description": "Of the file; json if absent."},
            },
        },
        {"type": "null"},
    ],
    "default": None,
    "description": "What to make of the result, in this order: filter, sort, limit, select, aggregate.",
}
"""The options, as a tool's schema shows them; ``plan_shaping`` checks them."""


class ResultShaping(msgspec.Struct, frozen=True, kw_only=True):
    """Options that were found to be right."""

    plan: ShapingPlan
    file_format: ResultFormat = "json"

    @property
    def idle(self) -> bool:
        """Nothing is asked."""
        return self.plan == ShapingPlan()

    @property
    def to_file(self) -> bool:
        return self.plan.return_mode == "file"


def plan_shaping(options: Any, name: str = "options") -> ResultShaping:
    """What ``options`` ask for: those of docs/shaping.md, and ``format``. ``name`` is what the caller calls them.

    Raises:
        InvalidArgumentsError: ``details.fields`` has every option that is wrong, with what is wrong with it.
    """
    given = options.get("format") if isinstance(options, dict) else None
    rest = {key: value for key, value in options.items() if key != "format"} if isinstance(options, dict) else options
    wrong: dict[str, str] = {}
    if given is not None and given not in RESULT_FORMATS:
        wrong[f"{name}.format"] = f"should be one of {', '.join(RESULT_FORMATS)}"
    elif given is not None and rest.get("return_mode") != "file":
        wrong[f"{name}.format"] = "is of files; it needs return_mode 'file'"
    try:
        planned = plan(rest, name)
    except InvalidArgumentsError as error:
        if not wrong or error.details is None:
            raise
        wrong = {**error.details["fields"], **wrong}
    if wrong:
        message = "; ".join(f"{place}: {told}" for place, told in wrong.items())
        raise InvalidArgumentsError(as_sentence(message), details={"fields": wrong})
    return ResultShaping(plan=planned, file_format=given or "json")


async def apply(planned: ShapingPlan, value: Json) -> ShapedValue:
    """Shape a value, in a thread where it is large, or where a long filter makes it much. Words that are a JSON object
    or list, as many tools answer that have no data beside them, are shaped as what they say.

    Raises:
        ShapingError: as ``ShapingPlan.apply``.
    """
    if planned != ShapingPlan():
        value = await said_by(value)
    conditions = sum(1 for _ in paths_of(planned.filter)) if planned.filter else 1
    most = _BYTES_AT_ONCE // conditions
    if is_large(value, min(_LARGE, _TESTS_AT_ONCE // conditions)) or (planned.filter and weight(value, most) > most):
        return await asyncio.to_thread(planned.apply, value)
    return planned.apply(value)


async def said_by(value: Json) -> Json:
    """What words say that are a JSON object or list, read in a thread where they are long; any other value itself."""
    if not isinstance(value, str) or not _OPENING.match(value):
        return value
    return await asyncio.to_thread(_decoded, value) if len(value) > _TEXT_AT_ONCE else _decoded(value)


def _decoded(text: str) -> Json:
    try:
        said: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    return said


def is_large(value: Json, most: int = _LARGE) -> bool:
    """Whether it has more than ``most`` values, so that shaping holds the loop up. Looks at no more than it has to."""
    waiting, seen = [value], 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            seen += len(item)
            if seen > most:
                return True
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return False


AROUND_BYTES: Final = 64 * 1024
"""Of the fields around the rows: a cursor, a total and their like."""
_SHARE: Final = 8
"""They have at most this part of an answer, which else became a file itself, under the handle that the rows have."""
_FIELD_BYTES: Final = 16
"""Of a field beside its name and its value, as JSON has it."""


async def filed(
    shaped: ShapedValue, shaping: ResultShaping, context: OrchestrationContext, *, name: str | None = None
) -> dict[str, Json]:
    """Retain the shaped value; returns the handle, and ``around`` it the fields of the
    object that the list stood in. Those that are too large are ``left_out``, which is how many.

    Raises:
        CallError: as ``OrchestrationContext.retain_result``.
    """
    kept = await context.retain_result(shaped.value, shaped.rows, shaping.file_format, name=name)
    beside = _beside(shaped.around, min(AROUND_BYTES, context.max_answer_bytes // _SHARE))
    return {**msgspec.to_builtins(kept), **beside}


def _beside(around: Mapping[str, Any], room: int) -> dict[str, Json]:
    """As many of the fields as there is room for, the small ones first."""
    sizes = {name: len(name) + _FIELD_BYTES + weight(value, room) for name, value in around.items()}
    taken = set()
    for name in sorted(sizes, key=sizes.__getitem__):
        if sizes[name] > room:
            break
        room -= sizes[name]
        taken.add(name)
    beside: dict[str, Json] = {}
    if taken:
        beside["around"] = {name: value for name, value in around.items() if name in taken}
    if left_out := len(around) - len(taken):
        beside["left_out"] = left_out
    return beside
