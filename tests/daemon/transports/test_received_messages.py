"""Messages of a WebSocket arrive whole and in order, however they are sent."""

import json
from typing import Any, Final

import pytest
from pydantic import BaseModel
from toold.daemon.transports import peer_connection
from toold.protocol.tool_call import Annotations
from toold.tools import Tool
from websockets.asyncio.client import connect
from websockets.asyncio.messages import MAX_FRAGMENTS
from websockets.exceptions import ConnectionClosed

TEXT: Final = 0x81
FIRST_OF_TEXT: Final = 0x01
LAST: Final = 0x80
BINARY: Final = 0x82
PING: Final = 0x89
LONG: Final = 300_000
"""Several reads and pieces, and beyond ``LARGE_BYTES``."""


class _Text(BaseModel):
    text: str


async def echo(arguments: _Text, context: Any) -> str:
    """Returns its argument."""
    return arguments.text


ECHO: Final = Tool("echo", "Returns its argument.", _Text, echo, Annotations(True, False, False, False))


def frame(first: int, payload: bytes) -> bytes:
    """A frame with a mask of zeros."""
    size = len(payload)
    length = (
        bytes((0x80 | size,))
        if size < 126
        else b"\xfe" + size.to_bytes(2)
        if size < 0x10000
        else b"\xff" + size.to_bytes(8)
    )
    return bytes((first,)) + length + bytes(4) + payload


def call(number: int, text: str) -> bytes:
    """A call of ``echo``."""
    return b'{"op":"call_tool","request_id":%d,"name":"echo","arguments":{"text":"%b"}}' % (number, text.encode())


async def texts(peer: Any, number: int) -> dict[int, str]:
    """The texts of this many answers, by their ids."""
    frames = [await peer.receive() for _ in range(number)]
    return {frame["request_id"]: frame["outputs"][0]["text"] for frame in frames}


@pytest.mark.parametrize("piece", [1000, 65_500, 70_000, LONG * 4], ids=str)
async def test_long_and_short_frames_arrive_whole_in_pieces_of_any_size(serve: Any, join: Any, piece: int) -> None:
    """Also in fragments, with a ping between them, and right behind each other."""
    peer = await join(await serve(ECHO, TOOLD_SPILL_BYTES="1000000"))
    wanted = {1: "first", 2: "a" * LONG, 3: "short", 4: "b" * LONG, 5: "c" * 100_000, 6: "é" * LONG, 7: "last"}
    long = call(4, wanted[4])
    fragments = frame(FIRST_OF_TEXT, long[:100_000]) + frame(PING, b"") + frame(LAST, long[100_000:])
    data = b"".join(fragments if number == 4 else frame(TEXT, call(number, text)) for number, text in wanted.items())
    for start in range(0, len(data), piece):
        peer.socket.transport.write(data[start : start + piece])
    assert await texts(peer, len(wanted)) == wanted


async def test_many_large_frames_in_a_row_arrive_whole(serve: Any, join: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data may end less than a piece before the end of a frame, with the next frame behind it."""
    monkeypatch.setattr(peer_connection, "_PIECE_BYTES", 200_000)  # else that is rare
    peer = await join(await serve(ECHO, TOOLD_SPILL_BYTES="1000000"))
    wanted = {number: chr(97 + number % 26) * (330_000 + 997 * number) for number in range(12)}
    data = b"".join(frame(TEXT, call(number, text)) for number, text in wanted.items())
    for start in range(0, len(data), 50_021):
        peer.socket.transport.write(data[start : start + 50_021])
    assert await texts(peer, len(wanted)) == wanted


async def test_binary_messages_are_refused_in_their_order(serve: Any, join: Any) -> None:
    """Fragmented ones too; the text messages around them are handled."""
    peer = await join(await serve(ECHO))
    fragments = frame(BINARY & 0x0F, call(7, "in")) + frame(LAST, b" binary")
    for data in (frame(TEXT, call(1, "a")), frame(BINARY, call(7, "x")), fragments, frame(TEXT, call(2, "b"))):
        peer.socket.transport.write(data)
    answers = [await peer.receive() for _ in range(4)]
    refused = [answer["error"]["message"] for answer in answers if answer["op"] == "error"]
    assert len(refused) == 2
    assert all("Binary frames are not supported" in message for message in refused)
    assert sorted(answer["request_id"] for answer in answers if answer["op"] == "call_tool_res") == [1, 2]


@pytest.mark.parametrize("length", [10, LONG], ids=["short", "long"])
async def test_a_text_that_is_not_utf_8_ends_the_connection(serve: Any, join: Any, length: int) -> None:
    """With 1007 (RFC 6455, 8.1), also if the wrong bytes are in a field that is not read."""
    peer = await join(await serve(ECHO))
    peer.socket.transport.write(frame(TEXT, b'{"op":"ping","x":"%b\xff"}' % (b"x" * length)))
    with pytest.raises(ConnectionClosed) as closed:
        await peer.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007


async def test_emoji_across_pieces_of_the_check_are_utf_8(serve: Any, join: Any) -> None:
    """A character may lie on the border between two pieces."""
    peer = await join(await serve(ECHO, TOOLD_SPILL_BYTES="8000000"))
    wanted = {1: "😀" * 300_000, 2: "x" + "😀" * 300_000}
    for number, text in wanted.items():
        peer.socket.transport.write(frame(TEXT, call(number, text)))
    assert await texts(peer, 2) == wanted


async def test_calls_may_follow_the_hello_at_once(serve: Any) -> None:
    """In the same packet, before the hello is answered."""
    daemon = await serve(ECHO)
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        hello = frame(TEXT, b'{"op":"hello"}')
        socket.transport.write(hello + b"".join(frame(TEXT, call(number, "a")) for number in range(40)))
        answers = [json.loads(await socket.recv()) for _ in range(41)]
    assert answers[0]["op"] == "hello_ack"
    assert sorted(answer["request_id"] for answer in answers[1:]) == list(range(40))


async def test_a_message_of_too_many_fragments_ends_the_connection(serve: Any, join: Any) -> None:
    """With 1009: each fragment takes memory, even an empty one."""
    peer = await join(await serve(ECHO))
    peer.socket.transport.write(frame(FIRST_OF_TEXT, b"") + frame(0, b"") * MAX_FRAGMENTS)
    with pytest.raises(ConnectionClosed) as closed:
        await peer.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
