"""Answers that are too large to send are spilled to files."""

import asyncio
from typing import Any

import pytest
from toold.daemon.dispatch import ByteLimits, answer_preparation, result_spill
from toold.protocol.error_codes import CallError, ServiceUnavailableError
from toold.protocol.tool_call import LOCAL, Principal, TextContent

ROWS = [{"id": number} for number in range(20_000)]


def returning(value: Any) -> Any:
    async def function(arguments: Any, context: Any) -> Any:
        return value

    return function


@pytest.mark.parametrize(
    "value", [ROWS, {"rows": ROWS, "total": 20_000}, "x" * 200_000], ids=["list", "object", "text"]
)
async def test_an_answer_larger_than_a_frame_is_spilled(make_harness: Any, make_tool: Any, value: Any) -> None:
    """The answer has the handle as its data, and a text with the size and what to do."""
    harness = make_harness([make_tool("big", returning(value))])
    result = await harness.call(harness.session(), 1, "big")
    (((principal, handle), stored),) = harness.results.kept.items()
    assert (principal, handle, stored) == (LOCAL, "test-1", value)
    assert result.structured["handle"] == "test-1"
    assert set(result.structured) == {"handle", "count", "bytes", "format", "expires"}
    assert result.metadata.spilled is True
    (block,) = result.outputs
    assert "test-1" in block.text
    assert "read_result" in block.text


async def test_a_lower_spill_limit_applies(make_harness: Any, make_tool: Any) -> None:
    """The operator sets the size; smaller answers are sent, and child answers never spill."""
    harness = make_harness(
        [make_tool("some", returning("x" * 8_000)), make_tool("few", returning("x" * 200))], spill_bytes=5_000
    )
    assert (await harness.call(harness.session(), 1, "some")).metadata.spilled is True
    small = await harness.call(harness.session(), 2, "few")
    assert (small.outputs, small.metadata.spilled) == ((TextContent("x" * 200),), None)


async def test_errors_are_not_spilled(make_harness: Any, make_tool: Any) -> None:
    """An error is sent as it is if it fits."""

    async def function(arguments: Any, context: Any) -> Any:
        raise CallError("No.", details={"long": "x" * 8_000})

    harness = make_harness([make_tool("bad", function)], spill_bytes=5_000)
    result = await harness.call(harness.session(), 1, "bad")
    assert (result.error.message, harness.results.kept) == ("No.", {})


async def test_an_answer_that_cannot_be_spilled_is_sent_if_it_fits(make_harness: Any, make_tool: Any) -> None:
    """A failed write does not lose a result."""
    harness = make_harness([make_tool("some", returning("x" * 8_000))], spill_bytes=5_000)
    harness.results.refusal = ServiceUnavailableError(
        "The result's file could not be written (No space left on device)."
    )
    result = await harness.call(harness.session(), 1, "some")
    assert (result.outputs, result.metadata.spilled) == ((TextContent("x" * 8_000),), None)


async def test_an_answer_that_neither_fits_nor_spills_is_too_large(make_harness: Any, make_tool: Any) -> None:
    """The error has both sizes and the reason, and says that the tool ran."""
    harness = make_harness([make_tool("big", returning("x" * 200_000))])
    harness.results.refusal = ServiceUnavailableError(
        "The result's file could not be written (No space left on device)."
    )
    error = (await harness.call(harness.session(), 1, "big")).error
    assert (error.code, error.executed, error.retryable) == ("RESULT_TOO_LARGE", "yes", False)
    assert "100000" in error.message
    assert "No space left on device" in error.message


async def test_a_hanging_disk_delays_an_answer_briefly(
    make_harness: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets the answer if it fits."""
    monkeypatch.setattr(result_spill, "WRITE_TIMEOUT_S", 0.01)
    harness = make_harness([make_tool("some", returning("x" * 8_000))], spill_bytes=5_000)
    harness.results.ready = asyncio.Event()
    assert (await harness.call(harness.session(), 1, "some")).outputs == (TextContent("x" * 8_000),)


async def test_a_repeat_gets_the_handle_again(make_harness: Any, make_tool: Any) -> None:
    """The stored answer is the one that was sent, not the whole result."""
    harness = make_harness([make_tool("big", returning(ROWS), read_only=False)])
    session = harness.session(key="key")
    first = await harness.call(session, 1, "big")
    repeat = harness.submit(session, 1, "big")
    assert (repeat.structured, repeat.metadata.replayed) == (first.structured, True)
    assert len(harness.journal.calls[session.id, "n1"].result) < 1_000


UNREAD = ByteLimits(session=20_000, principal=30_000, daemon=40_000)


async def test_answers_beyond_the_unread_limit_are_spilled(make_harness: Any, make_tool: Any) -> None:
    """The caller gets the handles of those that do not fit into memory; once it has read, whole answers again."""
    harness = make_harness([make_tool("some", returning("x" * 8_000))], unread_bytes=UNREAD)
    session = harness.session()
    harness.port.reading.clear()
    for number in range(6):
        harness.submit(session, number, "some")
    await harness.until(lambda: len(harness.recorder.ended_calls) == 6)
    assert harness.router.unread.total <= UNREAD.session
    harness.port.reading.set()
    await harness.answered()
    spilled = [bool(answer.metadata.spilled) for answer in harness.port.answers.values()]
    assert (len(spilled), sum(spilled), len(harness.results.kept)) == (6, 4, 4)
    (text,) = next(answer for answer in harness.port.answers.values() if answer.metadata.spilled).outputs
    assert "unread answers would exceed the limit of this session (20,000 bytes)" in text.text
    assert harness.router.unread.total == 0
    assert not (await harness.call(session, 7, "some")).metadata.spilled


async def test_a_principal_and_the_daemon_have_limits_of_their_own(make_harness: Any, make_tool: Any) -> None:
    """Many sessions, and many principals, hold no more than one limit together."""
    harness = make_harness([make_tool("some", returning("x" * 8_000))], unread_bytes=UNREAD)
    harness.port.reading.clear()
    for principal in ("one", "two", "three"):
        for number in range(4):
            harness.submit(harness.session(principal=Principal(principal)), f"{principal} {number}", "some")
    await harness.until(lambda: len(harness.recorder.ended_calls) == 12)
    assert UNREAD.principal < harness.router.unread.total <= UNREAD.daemon
    harness.port.reading.set()
    await harness.answered()
    assert (len(harness.port.answers), harness.router.unread.total) == (12, 0)


async def test_cached_results_have_a_limit_for_all_principals(make_harness: Any, make_tool: Any) -> None:
    """Beyond it results are spilled, so that nothing that is cached is deleted for another principal."""
    harness = make_harness([make_tool("some", returning("x" * 8_000))], max_cached_result_bytes_total=20_000)
    results = [
        await harness.call(harness.session(principal=Principal(name), key=name), name, "some")
        for name in ("one", "two", "three")
    ]
    assert [bool(result.metadata.spilled) for result in results] == [False, False, True]


async def test_an_answer_that_exceeds_a_limit_and_cannot_be_spilled_is_too_large(
    make_harness: Any, make_tool: Any
) -> None:
    """With a broken disk, memory stays bounded: the error says that the tool ran."""
    harness = make_harness([make_tool("some", returning("x" * 8_000))], unread_bytes=UNREAD)
    harness.results.refusal = ServiceUnavailableError("The result's file could not be written.")
    session = harness.session()
    harness.port.reading.clear()
    for number in range(4):
        harness.submit(session, number, "some")
    await harness.until(lambda: len(harness.recorder.ended_calls) == 4)
    harness.port.reading.set()
    await harness.answered()
    errors = [answer.error for answer in harness.port.answers.values() if answer.error]
    assert [(error.code, error.executed) for error in errors] == [("RESULT_TOO_LARGE", "yes")] * 2


async def test_no_tool_starts_while_the_disk_is_behind(
    make_harness: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results that wait for the disk are bounded: the next call of the session starts when one is written."""
    monkeypatch.setattr(answer_preparation, "_SPILLING", ByteLimits(session=10_000, principal=10_000, daemon=10_000))
    started: list[str] = []

    async def function(arguments: Any, context: Any) -> Any:
        started.append(context.call_id)
        return "x" * 8_000

    harness = make_harness([make_tool("some", function)], spill_bytes=5_000)
    harness.results.ready.clear()
    session = harness.session()
    for number in range(2):
        harness.submit(session, number, "some")
    await harness.until(lambda: len(started) == 2)
    await asyncio.sleep(0)
    harness.submit(session, 2, "some")
    await asyncio.sleep(0.01)
    assert len(started) == 2
    harness.results.ready.set()
    await harness.answered()
    assert len(started) == 3
