"""``echo`` returns its input."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import ToolOutput, bind, content
from toold.tools.builtin.echo import echo

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


async def answer(context: "Context", arguments: dict[str, Any]) -> Any:
    """The answer of ``echo`` for these arguments, bound as dispatch binds them."""
    return await echo.function(bind(echo, arguments), context)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=JSON)
def test_any_json_is_returned_unchanged(context: "Context", value: Any) -> None:
    """Any JSON value passes both frames unchanged, including its types."""
    sent = msgspec.json.encode({"value": value})
    returned = asyncio.run(answer(context, msgspec.json.decode(sent)))
    _, structured = content(returned, tool="echo")
    back = msgspec.json.encode({"value": structured})
    assert back == sent


async def test_text_is_returned_as_text(context: "Context") -> None:
    """If only text is sent, the answer is that text, even if it is empty."""
    assert await answer(context, {"text": "hi"}) == "hi"
    assert await answer(context, {"text": ""}) == ""


async def test_null_is_a_value(context: "Context") -> None:
    """A value of null is returned as null and not treated as missing."""
    assert await answer(context, {"value": None}) == ToolOutput(data=None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "give text .a string., or value"),
        ({"delay_ms": 1}, "give text .a string., or value"),
        ({"text": "a", "value": 1}, "give text or value, not both"),
        ({"text": "a", "value": None}, "give text or value, not both"),
        ({"text": None}, "give text .a string., or value"),
        ({"text": 5}, "text should be a string, not 5"),
        ({"text": "a", "delay_ms": -1}, "delay_ms should be greater than or equal to 0, not -1"),
        ({"text": "a", "delay_ms": 600_001}, "delay_ms should be less than or equal to 600000, not 600001"),
        ({"text": "a", "delay_ms": "soon"}, 'delay_ms should be a number, not "soon"'),
        ({"txt": "a"}, "txt is not an argument; did you mean 'text'"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    """Missing, conflicting and invalid arguments raise an error that names them."""
    with pytest.raises(InvalidArgumentsError, match=says):
        bind(echo, arguments)


async def test_answer_waits_for_the_delay(context: "Context") -> None:
    """The answer follows after the delay. A short delay is not reported."""
    loop = asyncio.get_running_loop()
    before = loop.time()
    assert await answer(context, {"text": "hi", "delay_ms": 30}) == "hi"
    assert loop.time() - before >= 0.029
    assert context.reports == []


async def test_long_delay_is_reported_and_can_be_cancelled(context: "Context") -> None:
    """A long delay is reported as progress, and a cancelled call ends at once."""
    call = asyncio.create_task(answer(context, {"text": "hi", "delay_ms": 600_000}))
    while not context.reports:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert context.reports == ["echo answers in 600 s"]
