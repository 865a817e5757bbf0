"""Reading bodies and sending responses."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from toold.daemon.transports import body_turn, http_io
from toold.daemon.transports.body_turn import BodyTurn
from toold.daemon.transports.http_io import (
    BodyTooLargeError,
    ClientDisconnectedError,
    EventStream,
    read_body,
    send_json,
    wait_disconnected,
)
from toold.daemon.transports.large_frames import LargeFrames, TurnLimits

Message = dict[str, Any]


def receiver(*messages: Message) -> Any:
    """Returns a ``receive`` that yields these messages."""
    waiting = iter(messages)

    async def receive() -> Message:
        return next(waiting)

    return receive


def pieces(*parts: bytes) -> Iterable[Message]:
    for part in parts[:-1]:
        yield {"type": "http.request", "body": part, "more_body": True}
    yield {"type": "http.request", "body": parts[-1], "more_body": False}


async def test_a_body_in_pieces() -> None:
    """They are joined; a body of exactly the limit is accepted."""
    assert await read_body(receiver(*pieces(b"12345")), 5) == b"12345"
    assert await read_body(receiver(*pieces(b"12", b"", b"345")), 5) == b"12345"


@pytest.mark.parametrize("parts", [(b"123456",), (b"123", b"456"), (b"123456", b"never read")])
async def test_a_body_above_the_limit(parts: tuple[bytes, ...]) -> None:
    """It is rejected at the first excess byte, and the rest is not read."""
    with pytest.raises(BodyTooLargeError):
        await read_body(receiver(*pieces(*parts)), 5)


async def test_a_client_that_disconnects() -> None:
    """Before its body is complete."""
    missing = {"type": "http.disconnect"}
    with pytest.raises(ClientDisconnectedError):
        await read_body(receiver({"type": "http.request", "body": b"1", "more_body": True}, missing), 5)
    await wait_disconnected(receiver({"type": "http.request", "body": b"", "more_body": False}, missing))


async def test_a_body_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops in the middle times out."""
    monkeypatch.setattr(http_io, "BODY_TIMEOUT_S", 0.01)
    first = receiver({"type": "http.request", "body": b"1", "more_body": True})
    requests: list[bool] = []

    async def receive() -> Any:
        if requests:
            await asyncio.Event().wait()
        requests.append(True)
        return await first()

    with pytest.raises(TimeoutError):
        await read_body(receive, 5)


async def test_a_body_that_dribbles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece arrives in time, but the whole body takes too long."""
    monkeypatch.setattr(http_io, "BODY_TIMEOUT_S", 0.05)

    async def dribble() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(TimeoutError):
        await read_body(dribble, 1_000_000)


async def test_a_large_body_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as its bytes take at the slowest rate."""
    monkeypatch.setattr(http_io, "BODY_TIMEOUT_S", -50.0)
    monkeypatch.setattr(http_io, "SLOWEST_BODY_RATE", 1)
    waiting = iter(pieces(b"x" * 100, b"rest"))

    async def receive() -> Message:
        piece = next(waiting)
        if not piece["more_body"]:
            await asyncio.sleep(0.001)
        return piece

    assert len(await read_body(receive, 1000)) == 104


async def test_large_bodies_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is not read before the first is done; one that dribbles loses its turn to one that waits."""
    monkeypatch.setattr(body_turn, "TURN_S", 0.05)
    monkeypatch.setattr(body_turn, "_CHECK_INTERVAL_S", 0.01)
    frames = LargeFrames(lambda: TurnLimits(1, 1))
    started = asyncio.Event()

    async def dribble() -> Message:
        started.set()
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"x" * 70_000, "more_body": True}

    late, waiting = BodyTurn(frames, "one"), BodyTurn(frames, "one")
    dribbling = asyncio.create_task(read_body(dribble, 10**12, turn=late))
    await started.wait()
    while "turns=1" not in repr(frames):
        await asyncio.sleep(0)
    reading = asyncio.create_task(read_body(receiver(*pieces(b"x" * 70_000, b"rest")), 10**6, turn=waiting))
    done, _ = await asyncio.wait([dribbling], timeout=20)
    assert done
    assert isinstance(dribbling.exception(), TimeoutError)
    late.release()
    assert len(await asyncio.wait_for(reading, 20)) == 70_004
    waiting.release()
    assert repr(frames) == "<LargeFrames turns=0 waiting=0>"


async def test_a_complete_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Needs no timeout, which would be a part of every call's cost."""
    monkeypatch.setattr(http_io, "BODY_TIMEOUT_S", "none is asked for")
    assert await read_body(receiver(*pieces(b"12345")), 5, whole=True) == b"12345"


async def test_json_and_empty_responses() -> None:
    """A response has its length and type; an empty one has no type."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await send_json(send, b"{}", 400, [(b"x", b"y")])  # type: ignore[arg-type] # ASGI's messages are mappings
    assert (sent[0]["status"], dict(sent[0]["headers"])) == (
        400,
        {b"content-type": b"application/json", b"content-length": b"2", b"x": b"y"},
    )
    await send_json(send, b"", 202)  # type: ignore[arg-type] # as above
    assert dict(sent[2]["headers"]) == {b"content-length": b"0"}


async def test_a_stream_starts_with_its_first_event() -> None:
    """Until then another response is possible; the last event completes it."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    stream = EventStream(send)  # type: ignore[arg-type] # as above
    begun = [stream.started]
    await stream.write(b"one")
    await stream.write(b"two", last=True)
    assert [*begun, stream.started] == [False, True]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body", "http.response.body"]
    assert dict(sent[0]["headers"])[b"content-type"] == b"text/event-stream"
    assert [message.get("more_body") for message in sent] == [None, True, False]
