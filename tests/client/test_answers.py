"""Who gets which answer: the table of requests in flight, and the reading of the daemon's frames."""

import asyncio
import json
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toold.client.answers import Answers, answered_with, read_frame
from toold.protocol.calls import Metadata, Progress, Timings
from toold.protocol.errors import OverCapacityError, ProtocolError, ToolError
from toold.protocol.frames import (
    CallToolAck,
    CallToolRes,
    ErrorFrame,
    GoingAway,
    Pong,
    ProgressFrame,
    ServerFrame,
    StreamChunk,
)

METADATA = Metadata(latency_ms=1.0, timings=Timings())


def answer(request_id: str, text: str = "") -> CallToolRes:
    return CallToolRes(request_id, [{"type": "text", "text": text}], None, METADATA)


@given(data=st.data(), count=st.integers(1, 20))
@settings(max_examples=60)
def test_whatever_the_order_each_request_gets_its_own_answer(data: st.DataObject, count: int) -> None:
    """Any interleaving of answers, repeats, strangers' answers and progress: each waits for and gets its own."""
    ids = [f"id-{number}" for number in range(count)]
    frames = st.sampled_from([*ids, "stranger"]).map(lambda i: answer(i, i)) | st.sampled_from(ids).map(
        lambda i: ProgressFrame(i, 1, "running")
    )
    order: list[ServerFrame] = [
        *data.draw(st.lists(frames, max_size=30)),
        *data.draw(st.permutations([answer(i, i) for i in ids])),
    ]

    async def main() -> None:
        answers = Answers()

        async def wait(request_id: str) -> str:
            with answers.expect(request_id) as waiting:
                frame = answered_with(CallToolRes, await waiting)
            return str(frame.outputs[0]["text"])

        tasks = [asyncio.create_task(wait(request_id)) for request_id in ids]
        await asyncio.sleep(0)
        for frame in order:
            answers.deliver(frame)
        assert await asyncio.gather(*tasks) == ids
        assert len(answers) == 0

    asyncio.run(main())


async def test_an_answer_that_comes_too_late_reaches_nobody() -> None:
    """Once a request is given up, its answer is dropped, even where the id is in use again by then."""
    answers = Answers()
    with answers.expect("id"):
        pass
    answers.deliver(answer("id"))
    with answers.expect("id") as waiting:
        assert not waiting.done()


async def test_an_id_in_flight_cannot_be_used_twice() -> None:
    """Two requests of one id could not be told apart, so the second is refused."""
    answers = Answers()
    with answers.expect("id"), pytest.raises(ValueError, match="in flight"), answers.expect("id"):
        pass
    assert len(answers) == 0


async def test_progress_and_chunks_reach_their_own_call_until_its_answer() -> None:
    """Callbacks hear their call's frames in order, and nothing after the terminal answer."""
    answers, heard = Answers(), list[object]()
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


async def test_a_callback_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """What a callback raises is logged; the call goes on and gets its answer."""
    answers = Answers()

    def fail(text: str) -> None:
        raise RuntimeError(text)

    with answers.expect("id", on_chunk=fail) as waiting:
        answers.deliver(StreamChunk("id", 1, "boom"))
        answers.deliver(answer("id"))
        assert await waiting == answer("id")
    assert "callback" in caplog.text


async def test_an_error_frame_ends_the_request_that_it_names(caplog: pytest.LogCaptureFixture) -> None:
    """An addressed error is raised where the request waits; one without address is logged."""
    error = ToolError("OVER_CAPACITY", "too much", "no", True, 100)
    answers = Answers()
    with answers.expect("id") as waiting:
        answers.deliver(ErrorFrame(error, "id"))
        with pytest.raises(OverCapacityError, match="too much") as refused:
            await waiting
    assert refused.value.retry_after_ms == 100
    answers.deliver(ErrorFrame(error))
    assert "too much" in caplog.text


async def test_the_end_fails_every_request_with_an_exception_of_its_own() -> None:
    """All waits end at once; those that have their answer keep it."""
    answers = Answers()
    with answers.expect("a") as a, answers.expect("b") as b, answers.expect("c") as c:
        answers.deliver(answer("c"))
        answers.fail_all(lambda: ConnectionError("gone"))
        assert isinstance(a.exception(), ConnectionError)
        assert a.exception() is not b.exception()
        assert await c == answer("c")


async def test_a_lowered_time_out_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The daemon's notice about a call is passed on through the log."""
    Answers().deliver(CallToolAck("id", True, 1000.0, "lowered to 1 s"))
    assert "lowered to 1 s" in caplog.text


async def test_announcements_that_were_not_asked_for_do_nothing() -> None:
    """A frame that is no answer is skipped."""
    answers = Answers()
    with answers.expect("id") as waiting:
        answers.deliver(GoingAway(1000))
        assert not waiting.done()


def test_an_answer_of_another_kind_is_the_daemons_mistake() -> None:
    """A pong to a call is a protocol error that names both."""
    with pytest.raises(ProtocolError, match=r"Pong.*CallToolRes"):
        answered_with(CallToolRes, Pong("id"))


@given(st.binary())
def test_any_bytes_are_a_frame_or_nothing(data: bytes) -> None:
    """Whatever a peer sends, reading it raises nothing."""
    read_frame(data)


@pytest.mark.parametrize(
    "data", ["[]", "7", "null", "{}", '{"op":7}', '{"op":"later"}', "{", '{"op":"later"', "[" * 9999]
)
def test_frames_that_are_not_known_are_skipped(data: str) -> None:
    """Unknown ops, other JSON and broken JSON are nothing."""
    assert read_frame(data.encode()) is None


@pytest.mark.parametrize(
    ("fields", "outputs", "error"),
    [
        ({"outputs": [{"type": "text", "text": "hi"}], "error": None}, [{"type": "text", "text": "hi"}], None),
        ({}, [], None),
        ({"outputs": "text", "metadata": {"latency_ms": "long"}}, [], None),
        ({"error": "it broke"}, [], ToolError("INTERNAL_ERROR", "it broke", "maybe", False)),
        ({"error": {"message": "it broke"}}, [], ToolError("INTERNAL_ERROR", "it broke", "maybe", False)),
        (
            {"error": {"code": "TIMEOUT", "message": "late", "executed": "maybe", "retryable": True}},
            [],
            ToolError("TIMEOUT", "late", "maybe", True),
        ),
    ],
)
def test_an_answer_that_does_not_fit_the_model_still_ends_its_call(
    fields: dict[str, Any], outputs: list[Any], error: ToolError | None
) -> None:
    """An answer with missing or wrong fields counts as far as it fits: no call hangs for a daemon's slip."""
    frame = read_frame(json.dumps({"op": "call_tool_res", "request_id": "id", **fields}))
    assert isinstance(frame, CallToolRes)
    assert (frame.request_id, list(frame.outputs), frame.error) == ("id", outputs, error)
    assert frame.structured is msgspec.UNSET


def test_what_was_skipped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Broken frames leave a line in the log, unknown ops one for those who debug."""
    with caplog.at_level(logging.DEBUG, "toold.client"):
        read_frame("{")
        read_frame('{"op":"later"}')
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
