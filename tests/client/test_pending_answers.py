"""The table of requests in flight."""

import asyncio
import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toold.client.client_frames import CallFrame
from toold.client.pending_answers import PendingAnswers, expect_frame
from toold.protocol.error_codes import CallCancelledError, OverCapacityError, ProtocolError, ToolError
from toold.protocol.frames import (
    CallToolAck,
    CallToolRes,
    CancelRes,
    ErrorFrame,
    GoingAway,
    Pong,
    ProgressFrame,
    ServerFrame,
    StreamChunk,
)
from toold.protocol.tool_call import CallStatus, Metadata, Progress, Timings

METADATA = Metadata(latency_ms=1.0, timings=Timings())


def answer(request_id: str, text: str = "") -> CallToolRes:
    return CallToolRes(request_id, [{"type": "text", "text": text}], None, METADATA)


@given(data=st.data(), count=st.integers(1, 20))
@settings(max_examples=60)
def test_each_request_gets_its_own_answer_in_any_order(data: st.DataObject, count: int) -> None:
    """For any interleaving of answers, duplicates, unknown ids and progress."""
    ids = [f"id-{number}" for number in range(count)]
    frames = st.sampled_from([*ids, "stranger"]).map(lambda i: answer(i, i)) | st.sampled_from(ids).map(
        lambda i: ProgressFrame(i, 1, "running")
    )
    order: list[ServerFrame] = [
        *data.draw(st.lists(frames, max_size=30)),
        *data.draw(st.permutations([answer(i, i) for i in ids])),
    ]

    async def main() -> None:
        answers = PendingAnswers()

        async def wait(request_id: str) -> str:
            with answers.expect(request_id) as waiting:
                frame = expect_frame(CallToolRes, await waiting.answer)
            return str(frame.outputs[0]["text"])

        tasks = [asyncio.create_task(wait(request_id)) for request_id in ids]
        await asyncio.sleep(0)
        for frame in order:
            answers.deliver(frame)
        assert await asyncio.gather(*tasks) == ids
        assert len(answers) == 0

    asyncio.run(main())


async def test_a_late_answer_is_dropped() -> None:
    """It is dropped even if the id is in use again."""
    answers = PendingAnswers()
    with answers.expect("id"):
        pass
    answers.deliver(answer("id"))
    with answers.expect("id") as waiting:
        assert waiting.open


async def test_an_id_in_flight_cannot_be_used_twice() -> None:
    """The second request is refused."""
    answers = PendingAnswers()
    with answers.expect("id"), pytest.raises(ValueError, match="in flight"), answers.expect("id"):
        pass
    assert len(answers) == 0


async def test_progress_and_chunks_reach_their_own_call_until_its_answer() -> None:
    """They arrive in order, and none arrives after the answer."""
    answers, heard = PendingAnswers(), list[object]()
    with answers.expect("id", on_progress=heard.append, on_chunk=heard.append), answers.expect("other"):
        for frame in (
            ProgressFrame("id", 1, "half", 1, 2),
            StreamChunk("id", 1, "a"),
            StreamChunk("other", 1, "b"),
            StreamChunk("id", 2, "c"),
            answer("id"),
            StreamChunk("id", 3, "d"),
        ):
            answers.deliver(frame)
    assert heard == [Progress("half", 1, 2), "a", "c"]


async def test_an_exception_in_a_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The call still gets its answer."""
    answers = PendingAnswers()

    def fail(text: str) -> None:
        raise RuntimeError(text)

    with answers.expect("id", on_chunk=fail) as waiting:
        answers.deliver(StreamChunk("id", 1, "boom"))
        answers.deliver(answer("id"))
        assert await waiting.answer == answer("id")
    assert "callback" in caplog.text


async def test_an_error_frame_ends_the_request_that_it_names(caplog: pytest.LogCaptureFixture) -> None:
    """An error frame without an id is logged."""
    error = ToolError("OVER_CAPACITY", "too much", "no", True, 100)
    answers = PendingAnswers()
    with answers.expect("id") as waiting:
        answers.deliver(ErrorFrame(error, "id"))
        with pytest.raises(OverCapacityError, match="too much") as refused:
            await waiting.answer
    assert refused.value.retry_after_ms == 100
    answers.deliver(ErrorFrame(error))
    assert "too much" in caplog.text


async def test_a_lowered_timeout_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The daemon's notice about an accepted call."""
    answers = PendingAnswers()
    with answers.expect("id") as waiting:
        answers.deliver(CallToolAck("id", True, 1000.0, "lowered to 1 s"))
        assert waiting.accepted
    assert "lowered to 1 s" in caplog.text


async def test_an_unawaited_error_is_not_reported_by_asyncio(caplog: pytest.LogCaptureFixture) -> None:
    """If the caller gives up at the moment of the failure."""
    answers = PendingAnswers()
    with answers.expect("id") as waiting:
        waiting.answer.set_exception(ConnectionError("gone"))
    del waiting
    gc.collect()
    assert not caplog.records


async def test_iteration_yields_unanswered_requests() -> None:
    """Answered and removed requests are not included."""
    answers = PendingAnswers()
    with answers.expect("a"), answers.expect("b"):
        answers.deliver(answer("a"))
        assert [waiting.request_id for waiting in answers] == ["b"]
        assert answers.open_request("a") is None
    assert answers.open_request("b") is None


@pytest.mark.parametrize(("status", "ended"), [("running", False), ("done", False), ("unknown", True)])
async def test_a_call_that_is_not_running_still_gets_its_answer(status: CallStatus, ended: bool) -> None:
    """Only a call that never reached the daemon ends with the cancel."""
    answers = PendingAnswers()
    with answers.expect("id", call=CallFrame(b"{}", None, True)) as waiting:
        answers.deliver(CancelRes("id", status))
        assert waiting.open is not ended
        if ended:
            with pytest.raises(CallCancelledError) as cancelled:
                await waiting.answer
            assert cancelled.value.executed == "no"


async def test_cancelling_another_clients_call_returns_the_status() -> None:
    """The cancel_res answers the cancel itself."""
    answers = PendingAnswers()
    with answers.expect("id") as waiting:
        answers.deliver(CancelRes("id", "unknown"))
        assert await waiting.answer == CancelRes("id", "unknown")


async def test_a_reset_request_waits_for_another_answer() -> None:
    """It counts as unsent until it is resent."""
    answers = PendingAnswers()
    with answers.expect("id") as waiting:
        waiting.sent = True
        answers.deliver(answer("id", "first"))
        waiting.reset()
        assert (waiting.open, waiting.sent) == (True, False)
        answers.deliver(answer("id", "second"))
        assert await waiting.answer == answer("id", "second")


async def test_unexpected_announcements_are_ignored() -> None:
    """Frames that answer no request are ignored."""
    answers = PendingAnswers()
    with answers.expect("id") as waiting:
        answers.deliver(GoingAway(1000))
        assert waiting.open


def test_an_answer_of_another_type_is_a_protocol_error() -> None:
    """The error names both types."""
    with pytest.raises(ProtocolError, match=r"Pong.*CallToolRes"):
        expect_frame(CallToolRes, Pong("id"))
