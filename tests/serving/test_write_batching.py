"""The writer that joins what one turn of the loop writes: order, flushing, dropping, and what it reports."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.serving import BatchingTransport


class Tape:
    """A transport that notes what is done with it, in order; ``buffered`` is what it says it has not sent yet.

    Once ``broken`` it takes nothing.
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
async def tape() -> Tape:
    return Tape()


@pytest.fixture
async def transport(tape: Tape) -> BatchingTransport:
    return BatchingTransport(cast("asyncio.Transport", tape))


async def turn() -> None:
    """Let the loop take one turn."""
    await asyncio.sleep(0)


async def test_writes_of_one_turn_become_one(transport: BatchingTransport, tape: Tape) -> None:
    """In their order, at the end of the turn; the next turn's go by themselves."""
    for piece in (b"one ", b"two ", b"three"):
        transport.write(piece)
    assert tape.done == []
    await turn()
    assert tape.done == [b"one two three"]
    transport.write(b"four")
    await turn()
    assert tape.done == [b"one two three", b"four"]


async def test_what_callbacks_of_the_same_turn_write_is_joined_too(transport: BatchingTransport, tape: Tape) -> None:
    """Calls that end in one turn answer in one write, whichever task they end in."""
    loop = asyncio.get_running_loop()
    for piece in (b"a", b"b", b"c"):
        loop.call_soon(transport.write, piece)
    await turn()
    await turn()
    assert tape.done == [b"abc"]


async def test_what_a_reader_may_not_be_behind_with_goes_out_at_once(transport: BatchingTransport, tape: Tape) -> None:
    """Only the transport can have who writes wait, so it is told of more than 64 KiB within the turn."""
    for piece in (b"a" * 60_000, b"b" * 6_000, b"c"):
        transport.write(piece)
    assert tape.done == [b"a" * 60_000 + b"b" * 6_000]
    assert transport.get_write_buffer_size() == 1
    await turn()
    assert tape.done[1:] == [b"c"]
    await turn()
    assert len(tape.done) == 2


@pytest.mark.parametrize("end", ["close", "eof"])
async def test_what_is_unsent_goes_out_before_the_end(transport: BatchingTransport, tape: Tape, end: str) -> None:
    """A close frame that was written in the same turn as the close still leaves; nothing is written twice."""
    transport.write(b"last ")
    transport.write(b"words")
    transport.close() if end == "close" else transport.write_eof()
    await turn()
    assert tape.done == [b"last words", end]


async def test_abort_drops_what_is_unsent(transport: BatchingTransport, tape: Tape) -> None:
    """After it nothing is written, also not at the end of the turn."""
    transport.write(b"never sent")
    transport.abort()
    await turn()
    assert tape.done == ["abort"]


async def test_what_was_written_in_the_turn_in_which_the_connection_broke_is_dropped(
    transport: BatchingTransport, tape: Tape
) -> None:
    """Whoever wrote it hears of the break by the connection, as always; the loop hears nothing."""
    transport.write(b"too late")
    tape.broken = True
    await turn()
    transport.write(b"x" * 70_000)
    assert tape.done == []
    assert transport.get_write_buffer_size() == 0


async def test_the_buffer_size_counts_what_is_unsent(transport: BatchingTransport, tape: Tape) -> None:
    """Whoever asks how far a reader is behind is told of both buffers."""
    tape.buffered = 100
    transport.write(b"12345")
    transport.write(b"678")
    assert transport.get_write_buffer_size() == 108
    await turn()
    assert transport.get_write_buffer_size() == 100


async def test_all_else_is_the_transports_own(transport: BatchingTransport) -> None:
    """The peer's address, pausing and the like."""
    assert transport.get_extra_info("peername") == "the peername"


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=5), st.none()), max_size=30))
def test_any_writes_in_any_turns_arrive_whole_and_in_order(script: list[bytes | None]) -> None:
    """None lets the loop turn. What arrives is what was written, and at most one write a turn."""

    async def play() -> list[Any]:
        tape = Tape()
        transport = BatchingTransport(cast("asyncio.Transport", tape))
        for step in script:
            if step is None:
                await turn()
            else:
                transport.write(step)
        transport.close()
        return tape.done

    *writes, end = asyncio.run(play())
    assert end == "close"
    assert b"".join(writes) == b"".join(step for step in script if step)
    assert len(writes) <= script.count(None) + 1
