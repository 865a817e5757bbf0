"""Answers that are too large to send are spilled to files."""

import asyncio
from typing import Any

import pytest
from toold.daemon.dispatch import result_spill
from toold.protocol.error_codes import CallError, ServiceUnavailableError
from toold.protocol.tool_call import LOCAL, TextContent

ROWS = [{"id": number} for number in range(20_000)]


def returning(value: Any) -> Any:
    async def function(arguments: Any, context: Any) -> Any:
        return value

    return function


@pytest.mark.parametrize(
    "value", [ROWS, {"rows": ROWS, "total": 20_000}, "x" * 200_000], ids=["list", "object", "text"]
)
async def test_an_answer_larger_than_a_frame_is_spilled(make_harness: Any, make: Any, value: Any) -> None:
    """The answer has the handle as its data, and a text with the size and what to do."""
    harness = make_harness([make("big", returning(value))])
    result = await harness.call(harness.session(), 1, "big")
    (((principal, handle), kept),) = harness.results.kept.items()
    assert (principal, handle, kept) == (LOCAL, "test-1", value)
    assert result.structured["handle"] == "test-1"
    assert set(result.structured) == {"handle", "count", "bytes", "format", "expires"}
    assert result.metadata.spilled is True
    (block,) = result.outputs
    assert "test-1" in block.text
    assert "read_result" in block.text


async def test_a_lower_spill_limit_applies(make_harness: Any, make: Any) -> None:
    """The operator sets the size; smaller answers are sent, and child answers never spill."""
    harness = make_harness([make("some", returning("x" * 8_000)), make("few", returning("x" * 200))], spill_bytes=5_000)
    assert (await harness.call(harness.session(), 1, "some")).metadata.spilled is True
    small = await harness.call(harness.session(), 2, "few")
    assert (small.outputs, small.metadata.spilled) == ((TextContent("x" * 200),), None)


async def test_errors_are_not_spilled(make_harness: Any, make: Any) -> None:
    """An error is sent as it is if it fits."""

    async def function(arguments: Any, context: Any) -> Any:
        raise CallError("No.", details={"long": "x" * 8_000})

    harness = make_harness([make("bad", function)], spill_bytes=5_000)
    result = await harness.call(harness.session(), 1, "bad")
    assert (result.error.message, harness.results.kept) == ("No.", {})


async def test_an_answer_that_cannot_be_spilled_is_sent_if_it_fits(make_harness: Any, make: Any) -> None:
    """A failed write does not lose a result."""
    harness = make_harness([make("some", returning("x" * 8_000))], spill_bytes=5_000)
    harness.results.refusal = ServiceUnavailableError(
        "The result's file could not be written (No space left on device)."
    )
    result = await harness.call(harness.session(), 1, "some")
    assert (result.outputs, result.metadata.spilled) == ((TextContent("x" * 8_000),), None)


async def test_an_answer_that_neither_fits_nor_spills_is_too_large(make_harness: Any, make: Any) -> None:
    """The error has both sizes and the reason, and says that the tool ran."""
    harness = make_harness([make("big", returning("x" * 200_000))])
    harness.results.refusal = ServiceUnavailableError(
        "The result's file could not be written (No space left on device)."
    )
    error = (await harness.call(harness.session(), 1, "big")).error
    assert (error.code, error.executed, error.retryable) == ("RESULT_TOO_LARGE", "yes", False)
    assert "100000" in error.message
    assert "No space left on device" in error.message


async def test_a_hanging_disk_delays_an_answer_briefly(
    make_harness: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets the answer if it fits."""
    monkeypatch.setattr(result_spill, "WRITE_TIMEOUT_S", 0.01)
    harness = make_harness([make("some", returning("x" * 8_000))], spill_bytes=5_000)
    harness.results.ready = asyncio.Event()
    assert (await harness.call(harness.session(), 1, "some")).outputs == (TextContent("x" * 8_000),)


async def test_a_repeat_gets_the_handle_again(make_harness: Any, make: Any) -> None:
    """The stored answer is the one that was sent, not the whole result."""
    harness = make_harness([make("big", returning(ROWS), read_only=False)])
    session = harness.session(key="key")
    first = await harness.call(session, 1, "big")
    again = harness.submit(session, 1, "big")
    assert (again.structured, again.metadata.replayed) == (first.structured, True)
    assert len(harness.journal.calls[session.id, "n1"].result) < 1_000
