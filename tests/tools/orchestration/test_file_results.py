"""Results as files: what is answered beside the handle."""

from typing import Any

import pytest
from toold.tools.orchestration.file_results import AROUND_BYTES, filed
from toold.tools.orchestration.result_shaping import apply, plan_shaping


async def answered(context: Any, value: Any, **options: Any) -> dict[str, Any]:
    shaping = plan_shaping({"return_mode": "file", **options})
    return await filed(await apply(shaping.plan, value), shaping, context, name="a")


@pytest.mark.parametrize(
    ("options", "around"),
    [
        ({}, {"around": {"next_cursor": "c", "total": 9}}),
        ({"limit": 1}, {"around": {"next_cursor": "c", "total": 9}}),
        ({"at": "items"}, {}),
        ({"aggregate": {"count": True}}, {}),
        ({"select_fields": ["total"]}, {}),
    ],
    ids=["all", "limited", "the list alone", "figures", "one value"],
)
async def test_the_fields_around_the_rows_are_beside_the_handle(
    context: Any, options: dict[str, Any], around: dict[str, Any]
) -> None:
    """So that the next page can be asked for; the file has the rows alone. What is kept whole has nothing beside it."""
    answer = await answered(context, {"items": [{"n": 1}, {"n": 2}], "next_cursor": "c", "total": 9}, **options)
    assert answer["handle"] == f"{context.call_id}/a"
    assert {name: answer[name] for name in ("around", "left_out") if name in answer} == around


@pytest.mark.parametrize(("answer_bytes", "most"), [(20 * 1024**2, AROUND_BYTES), (4096, 512)])
async def test_what_is_too_large_to_stand_beside_is_left_out(context: Any, answer_bytes: int, most: int) -> None:
    """And counted; small fields come first, in the order in which they were."""
    context.max_answer_bytes = answer_bytes
    value = {"page": "x" * most, "text": "y" * (most - 100), "rows": [1], "next": "c", "more": "z" * 100, "total": 9}
    answer = await answered(context, value)
    assert answer["around"] == {"next": "c", "more": "z" * 100, "total": 9}
    assert answer["left_out"] == 2
