"""Results as files: the rows are kept, and their handle is answered with what is around them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ...protocol.tool_call import Json
from ...shaping import ShapedValue, weight
from ..orchestration_context import OrchestrationContext
from .result_shaping import ResultShaping

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
