"""The frames that the daemon reads and writes itself are those of the library, ``websockets``."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.transports.websocket_frames import begun_text, leading_texts, text_header
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

SIZES = st.sampled_from([0, 1, 5, 125, 126, 127, 128, 1000, 65_535, 65_536, 70_000])
MAX_BYTES = 66_000


def parsed(data: bytes) -> tuple[list[Frame], int]:
    """The complete frames of a client at the beginning of ``data``, as the library parses them, and their size."""
    frames, reader, size = [], StreamReader(), 0
    reader.feed_data(data)
    while True:
        parsing = Frame.parse(reader.read_exact, mask=True)
        try:
            next(parsing)
        except StopIteration as stop:
            frames.append(stop.value)
            size = len(data) - len(reader.buffer)
        else:
            return frames, size


@given(frames=st.lists(st.tuples(SIZES, st.binary(min_size=1, max_size=30)), max_size=5), cut=st.integers(0, 200))
def test_texts_are_read_as_the_library_reads_them(frames: list[tuple[int, bytes]], cut: int) -> None:
    """Masked ones of any length, up to the limits; an incomplete one at the end is left."""
    payloads = [(pattern * size)[:size] for size, pattern in frames]
    data = b"".join(Frame(Opcode.TEXT, payload).serialize(mask=True) for payload in payloads)
    data = data[: max(0, len(data) - cut)]
    texts, end = leading_texts(data, MAX_BYTES)
    whole, size = parsed(data)
    expected = [bytes(frame.data) for frame in whole]
    long = next((number for number, text in enumerate(expected) if len(text) > 65_535), len(expected))
    assert texts == expected[:long]
    assert end == size or long < len(expected)
    assert parsed(data[end:])[0] == whole[long:]


OTHERS: dict[str, bytes] = {
    "binary": Frame(Opcode.BINARY, b"x").serialize(mask=True),
    "fragment": Frame(Opcode.TEXT, b"x", fin=False).serialize(mask=True),
    "ping": Frame(Opcode.PING, b"x").serialize(mask=True),
    "close": Frame(Opcode.CLOSE, b"").serialize(mask=True),
    "not masked": Frame(Opcode.TEXT, b"x" * 20).serialize(mask=False),
    "reserved bit": bytes((0xC1, 0x81)) + bytes(5),
    "too long": Frame(Opcode.TEXT, b"x" * 101).serialize(mask=True),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_other_frames_are_left_to_the_library(other: bytes) -> None:
    """Wherever they are among the texts: it handles them, or ends the connection."""
    text = Frame(Opcode.TEXT, b"first").serialize(mask=True)
    assert leading_texts(other + text, 100) == ([], 0)
    assert leading_texts(text + other + text, 100) == ([b"first"], len(text))


@given(size=SIZES)
def test_headers_are_those_of_the_library(size: int) -> None:
    """For each of the three forms of a length."""
    frame: Any = Frame(Opcode.TEXT, bytes(size)).serialize(mask=False)
    assert text_header(size) == frame[: len(frame) - size]


LONG = Frame(Opcode.TEXT, bytes(range(250)) * 300)


@given(first=st.integers(0, 60_000), pieces=st.lists(st.integers(0, 40_000), max_size=8))
def test_a_long_text_is_unmasked_piece_by_piece(first: int, pieces: list[int]) -> None:
    """Wherever it is cut; what follows it is not taken."""
    data = LONG.serialize(mask=True)
    text = begun_text(data[: 14 + first], 65_536, 75_000)
    assert text is not None
    at = 14 + first
    for size in (*pieces, len(data)):
        assert (text.received, text.missing) == (at - 14, len(data) - at)
        piece = data[at : at + min(size, text.missing)]
        text.add(piece)
        at += len(piece)
    assert text.payload() == LONG.data


def test_other_long_frames_are_left_to_the_library() -> None:
    """Those with an incomplete header, complete ones, shorter or longer ones, and all but unfragmented masked texts."""
    text = LONG.serialize(mask=True)
    assert begun_text(text[:-1], 65_536, 75_000) is not None
    assert begun_text(text[:13], 65_536, 75_000) is None
    assert begun_text(text, 65_536, 75_000) is None
    assert begun_text(text[:-1], 75_000, 80_000) is None
    assert begun_text(text[:-1], 65_536, 74_999) is None
    for other in (Frame(Opcode.BINARY, LONG.data), Frame(Opcode.TEXT, LONG.data, fin=False)):
        assert begun_text(other.serialize(mask=True)[:-1], 65_536, 75_000) is None
    assert begun_text(LONG.serialize(mask=False)[:-1], 65_536, 75_000) is None


def test_small_pieces_of_a_long_text_are_collected() -> None:
    """A client that sends single bytes does not fill the memory with objects."""
    data = LONG.serialize(mask=True)
    text = begun_text(data[:14], 65_536, 75_000)
    assert text is not None
    for at in range(14, len(data)):
        text.add(data[at : at + 1])
    assert len(text._pieces) == 2
    assert text.payload() == LONG.data
