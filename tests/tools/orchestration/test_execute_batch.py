"""What a batch is asked for, and what is refused before anything runs."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import bind
from toold.tools.orchestration.execute_batch import BatchArguments, execute_batch, plan_batch


def arguments(**given: Any) -> BatchArguments:
    bound = bind(execute_batch, {"tool_name": "get", "items": [{"path": "x"}], **given})
    assert isinstance(bound, BatchArguments)
    return bound


def test_it_is_five_at_once_that_go_on_after_a_failure(tools: Any) -> None:
    """Without retries and results, unless the caller says otherwise."""
    plan = plan_batch(arguments(), [{}], tools("get"))
    assert (plan.concurrency, plan.max_retries, plan.stop_on_error, plan.detail) == (5, 0, False, False)
    options = {"concurrency": 2, "max_retries": 3, "on_error": "stop", "result_mode": "detail", "select_fields": ["a"]}
    plan = plan_batch(arguments(options=options), [{}], tools("get"))
    assert (plan.concurrency, plan.max_retries, plan.stop_on_error, plan.detail) == (2, 3, True, True)
    assert plan.shape is not None


@pytest.mark.parametrize(
    ("given", "place", "wrong"),
    [
        ({"args": {"path": "{{item.x}}", "limt": 1}}, "args.limt", "did you mean 'limit'"),
        ({"args": {"limit": "{{index}}"}}, "args.path", "is missing"),
        ({"args": {"path": "{{itm}}"}}, "args", "no 'itm' in a batch"),
        ({"args": {"path": "{{item"}}, "args", "position"),
        ({"items": ["a", "b"]}, "items", "args says how"),
        ({"options": {"select_fields": ["a..b"]}}, "options.select_fields.0", "position"),
    ],
)
def test_what_is_wrong_for_every_item_is_refused_at_once(
    tools: Any, given: dict[str, Any], place: str, wrong: str
) -> None:
    """Nothing runs for it, and the error names the place."""
    with pytest.raises(InvalidArgumentsError) as raised:
        plan_batch(arguments(**given), given.get("items", [{}]), tools("get"))
    assert wrong in (raised.value.details or {})["fields"][place]


@pytest.mark.parametrize(
    "given",
    [
        {"timeout_s": 86_401},
        {"options": {"concurrency": 11}},
        {"options": {"max_retries": 4}},
        {"options": {"on_error": "fallback"}},
    ],
)
def test_bounds_are_kept_to(given: dict[str, Any]) -> None:
    """A day, 10 at once, 3 retries."""
    with pytest.raises(InvalidArgumentsError):
        arguments(**given)
