"""Answers that are too large to be sent are kept as files, and say so."""

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
async def test_what_does_not_fit_into_a_frame_is_kept_whole(house: Any, make: Any, value: Any) -> None:
    """The answer has the handle as its data, and in words how large it was and what to do."""
    home = house([make("big", returning(value))])
    result = await home.call(home.session(), 1, "big")
    (((principal, handle), kept),) = home.results.kept.items()
    assert (principal, handle, kept) == (LOCAL, "test-1", value)
    assert result.structured["handle"] == "test-1"
    assert set(result.structured) == {"handle", "count", "bytes", "format", "expires"}
    assert result.metadata.spilled is True
    (block,) = result.outputs
    assert "test-1" in block.text
    assert "read_result" in block.text


async def test_a_bound_below_the_frame_spills_too(house: Any, make: Any) -> None:
    """The operator says from which size on; what is smaller is sent as ever, and a child's answer is its parent's."""
    home = house([make("some", returning("x" * 8_000)), make("few", returning("x" * 200))], spill_bytes=5_000)
    assert (await home.call(home.session(), 1, "some")).metadata.spilled is True
    small = await home.call(home.session(), 2, "few")
    assert (small.outputs, small.metadata.spilled) == ((TextContent("x" * 200),), None)


async def test_an_error_is_no_result(house: Any, make: Any) -> None:
    """It is sent as it is, where it fits."""

    async def function(arguments: Any, context: Any) -> Any:
        raise CallError("No.", details={"long": "x" * 8_000})

    home = house([make("bad", function)], spill_bytes=5_000)
    result = await home.call(home.session(), 1, "bad")
    assert (result.error.message, home.results.kept) == ("No.", {})


async def test_where_the_disk_refuses_what_fits_is_sent(house: Any, make: Any) -> None:
    """A result is not lost for want of a file."""
    home = house([make("some", returning("x" * 8_000))], spill_bytes=5_000)
    home.results.refusal = ServiceUnavailableError("The result's file could not be written (No space left on device).")
    result = await home.call(home.session(), 1, "some")
    assert (result.outputs, result.metadata.spilled) == ((TextContent("x" * 8_000),), None)


async def test_what_neither_fits_nor_can_be_kept_is_too_large(house: Any, make: Any) -> None:
    """The error has both sizes and the reason, and that the tool has run."""
    home = house([make("big", returning("x" * 200_000))])
    home.results.refusal = ServiceUnavailableError("The result's file could not be written (No space left on device).")
    error = (await home.call(home.session(), 1, "big")).error
    assert (error.code, error.executed, error.retryable) == ("RESULT_TOO_LARGE", "yes", False)
    assert "100000" in error.message
    assert "No space left on device" in error.message


async def test_a_disk_that_hangs_is_not_waited_for_long(house: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller gets what fits."""
    monkeypatch.setattr(result_spill, "WRITE_TIMEOUT_S", 0.01)
    home = house([make("some", returning("x" * 8_000))], spill_bytes=5_000)
    home.results.ready = asyncio.Event()
    assert (await home.call(home.session(), 1, "some")).outputs == (TextContent("x" * 8_000),)


async def test_a_repeat_gets_the_handle_again(house: Any, make: Any) -> None:
    """What is stored of the call is what was sent, not the whole of it once more."""
    home = house([make("big", returning(ROWS), read_only=False)])
    session = home.session(key="key")
    first = await home.call(session, 1, "big")
    again = home.submit(session, 1, "big")
    assert (again.structured, again.metadata.replayed) == (first.structured, True)
    assert len(home.journal.calls[session.id, "n1"].result) < 1_000
