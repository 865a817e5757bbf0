"""Batched writes: order, flushing, dropping, and the reported buffer size."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.serving import BatchingTransport


class RecordingTransport:
    """A transport that records its calls, in order; ``buffered`` is its reported number of unsent bytes. Once
    ``broken`` it accepts nothing.
    """

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.buffered = 0
        self.broken = False

    def is_closing(self) -> bool:
        return self.broken

    def write(self, data: bytes) -> None:
        if self.broken:
            raise RuntimeError("the handler is closed")  # as uvloop's do
        self.done.append(data)

    def writelines(self, pieces: list[bytes]) -> None:
        self.done.append(list(pieces))

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def write_eof(self) -> None:
        self.done.append("eof")

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")

    def get_extra_info(self, name: str) -> str:
        return f"the {name}"


@pytest.fixture
async def recorded() -> RecordingTransport:
    return RecordingTransport()


@pytest.fixture
async def transport(recorded: RecordingTransport) -> BatchingTransport:
    return BatchingTransport(cast("asyncio.Transport", recorded))


async def turn() -> None:
    """Runs one event loop iteration."""
    await asyncio.sleep(0)


async def test_writes_of_one_iteration_are_batched(transport: BatchingTransport, recorded: RecordingTransport) -> None:
    """In order, at the end of the iteration; later writes are separate."""
    for piece in (b"one ", b"two ", b"three"):
        transport.write(piece)
    assert recorded.done == []
    await turn()
    assert recorded.done == [b"one two three"]
    transport.write(b"four")
    await turn()
    assert recorded.done == [b"one two three", b"four"]


async def test_writes_of_several_callbacks_are_batched(
    transport: BatchingTransport, recorded: RecordingTransport
) -> None:
    """Calls that end in the same iteration of the event loop share one write, also if their tasks differ."""
    loop = asyncio.get_running_loop()
    for piece in (b"a", b"b", b"c"):
        loop.call_soon(transport.write, piece)
    await turn()
    await turn()
    assert recorded.done == [b"abc"]


async def test_large_writes_are_sent_at_once(transport: BatchingTransport, recorded: RecordingTransport) -> None:
    """Only the transport can make the writer wait, so it gets more than 64 KiB immediately, without a copy."""
    for piece in (b"a" * 60_000, b"b" * 6_000, b"c"):
        transport.write(piece)
    assert recorded.done == [[b"a" * 60_000, b"b" * 6_000]]
    assert transport.get_write_buffer_size() == 1
    await turn()
    assert recorded.done[1:] == [b"c"]
    await turn()
    assert len(recorded.done) == 2


@pytest.mark.parametrize("end", ["close", "eof"])
async def test_pending_writes_precede_the_close(
    transport: BatchingTransport, recorded: RecordingTransport, end: str
) -> None:
    """A close frame written in the same iteration is sent; nothing is written twice."""
    transport.write(b"last ")
    transport.write(b"words")
    transport.close() if end == "close" else transport.write_eof()
    await turn()
    assert recorded.done == [b"last words", end]


async def test_abort_drops_pending_writes(transport: BatchingTransport, recorded: RecordingTransport) -> None:
    """Nothing is written later."""
    transport.write(b"never sent")
    transport.abort()
    await turn()
    assert recorded.done == ["abort"]


async def test_pending_writes_of_a_broken_connection_are_dropped(
    transport: BatchingTransport, recorded: RecordingTransport
) -> None:
    """The writer learns of the break by the connection, as usual; the event loop sees no error."""
    transport.write(b"too late")
    recorded.broken = True
    await turn()
    transport.write(b"x" * 70_000)
    assert recorded.done == []
    assert transport.get_write_buffer_size() == 0


async def test_the_buffer_size_includes_pending_writes(
    transport: BatchingTransport, recorded: RecordingTransport
) -> None:
    """So slow readers are recognized."""
    recorded.buffered = 100
    transport.write(b"12345")
    transport.write(b"678")
    assert transport.get_write_buffer_size() == 108
    await turn()
    assert transport.get_write_buffer_size() == 100


async def test_other_attributes_are_the_transports(transport: BatchingTransport) -> None:
    """The peer's address, pausing and others."""
    assert transport.get_extra_info("peername") == "the peername"


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=5), st.none()), max_size=30))
def test_any_writes_arrive_complete_and_in_order(script: list[bytes | None]) -> None:
    """None runs one iteration. At most one write per iteration."""

    async def play() -> list[Any]:
        recorded = RecordingTransport()
        transport = BatchingTransport(cast("asyncio.Transport", recorded))
        for step in script:
            if step is None:
                await turn()
            else:
                transport.write(step)
        transport.close()
        return recorded.done

    *writes, end = asyncio.run(play())
    assert end == "close"
    assert b"".join(writes) == b"".join(step for step in script if step)
    assert len(writes) <= script.count(None) + 1
