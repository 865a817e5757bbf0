"""Deadlines, cancellation and retries, on every transport: no request outlives its call."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import CallTimeoutError, ServiceUnavailableError
from toold.providers import CompletionRequest, Message, count_sdk_retries

if TYPE_CHECKING:
    from tests.providers.conftest import Asker, Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


PATIENCE_S = 30.0
"""Far longer than any of these tests takes, so that a hanging test fails."""


async def test_hung_call_ends_at_the_deadline(asker: "Asker") -> None:
    """A vendor that never answers causes a TIMEOUT at the deadline, and the connection is closed."""
    with pytest.raises(CallTimeoutError) as caught:
        await asker.ask("[[sim:hang]]", timeout_s=0.1)
    assert caught.value.executed == "maybe"
    assert "0.1 s" in caught.value.message
    await asker.bench.until_in_flight(asker.vendor, 0)


async def time_out(streamer: "Asker", prompt: str) -> tuple[CallTimeoutError, float]:
    """Returns the error of a stream whose deadline passes after its first chunk, and the timeout.

    On a busy machine a short deadline passes before the first chunk; then a longer one is tried.
    """
    for timeout_s in (0.6, 3.0, 15.0):
        with pytest.raises(CallTimeoutError) as caught:
            await streamer.ask(prompt, timeout_s=timeout_s)
        if streamer.deltas:
            return caught.value, timeout_s
    pytest.fail("no chunk arrived")


async def test_slow_stream_ends_at_the_deadline(streamer: "Asker") -> None:
    """Chunks that keep arriving do not extend the deadline, and the reported silence stays short."""
    error, timeout_s = await time_out(streamer, "[[sim:stream_delay=0.02 say=" + "on and " * 500 + "on]]")
    assert (error.details or {})["silent_s"] < timeout_s
    await streamer.bench.until_in_flight(streamer.vendor, 0)


async def test_stalled_stream_ends_at_the_deadline(streamer: "Asker") -> None:
    """A vendor that stops sending after some chunks also causes a TIMEOUT."""
    await time_out(streamer, "[[sim:hang_after=4]]")
    await streamer.bench.until_in_flight(streamer.vendor, 0)


async def test_attempt_ends_at_the_timeout_of_the_model(asker: "Asker") -> None:
    """A model's ``timeout_s`` limits one attempt, regardless of how much time the call has."""
    prompt = "[[sim:hang_after=2]]" if asker.streamed else "[[sim:hang]]"
    with pytest.raises(CallTimeoutError) as caught:
        await asker.ask(prompt, timeout_s=8, kind="hasty")
    assert "within 0.2 s" in caught.value.message
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_cancelling_closes_the_connection_to_the_vendor(asker: "Asker") -> None:
    """A cancelled call raises CancelledError after its work has ended, and the vendor then runs no request."""
    asking = asyncio.create_task(asker.ask("[[sim:hang_after=4]]" if asker.streamed else "[[sim:hang]]"))
    await asker.bench.until_in_flight(asker.vendor, 1)
    if asker.streamed:
        await asker.until_heard()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asker.bench.until_in_flight(asker.vendor, 0)


@pytest.mark.slow
async def test_cancel_at_any_moment_leaves_no_request_running(asker: "Asker") -> None:
    """A call that is cancelled at any moment is either answered or cancelled, and no request keeps running.

    The test cancels after each of the first loop iterations: while connecting, sending, waiting, reading, closing.
    """

    async def cancelled_after(turns: int, prompt: str) -> None:
        asking = asyncio.create_task(asker.ask(prompt))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            assert (await asking).text

    async with asyncio.timeout(PATIENCE_S):
        for turns in range(50):
            await cancelled_after(turns, "[[sim:hang]]")
            await cancelled_after(2 * turns, "Hello.")
    await asker.bench.until_in_flight(asker.vendor, 0)


@pytest.mark.slow
async def test_simultaneous_deadline_and_http_timeout_close_the_connection(asker: "Asker") -> None:
    """The deadline of the call and the HTTP timeout can expire at the same instant. In either order the call is a
    TIMEOUT and the vendor runs no request.
    """

    async def timed_out(timeout_s: float) -> None:
        with pytest.raises(CallTimeoutError):
            await asker.ask("[[sim:hang]]", timeout_s=timeout_s)

    async with asyncio.timeout(PATIENCE_S):
        for _ in range(8):
            await asyncio.gather(*(timed_out(0.02 + 0.0007 * number) for number in range(4)))
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_sdks_retry_only_if_another_attempt_fits(bench: "Bench") -> None:
    """If the time allows it, each SDK retries a failed request and reports the retry. Plain HTTP does not retry."""

    async def attempts(vendor: str, sdk: str) -> int:
        marker, repeats = f"{vendor} over {sdk}", list[int]()
        asking = CompletionRequest(bench.model(vendor), (Message("user", f"{marker} [[sim:status=500]]"),))
        with pytest.raises(ServiceUnavailableError), count_sdk_retries(lambda: repeats.append(1)):
            await bench.open(vendor, sdk).complete(asking, timeout_s=69)
        seen = sum(marker in str(seen.body) for seen in bench.simulator.log)
        assert len(repeats) == seen - 1
        return seen

    counts = await asyncio.gather(
        attempts("kimi", "openai"), attempts("glm", "zhipuai"), attempts("glm", "zai"), attempts("glm", "http")
    )
    assert list(counts) == [2, 2, 2, 1]
