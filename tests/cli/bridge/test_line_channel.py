"""Bytes to lines, and lines to bytes."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.bridge.line_channel import LineChannel, LineSplitter, LineTooLong


@given(st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line and line == line.strip())))
def test_lines_do_not_depend_on_chunking(lines: list[bytes]) -> None:
    """The same lines result, whatever the chunks; empty lines and the line ends of other systems are dropped."""
    data = b"\n\n".join(line + b"\r" for line in lines)
    for size in (1, 3, 1000):
        splitter = LineSplitter(100)
        found = [line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])]
        assert found + splitter.end() == lines


def test_a_line_that_is_too_long() -> None:
    """A marker replaces it, and the next line is read."""
    splitter = LineSplitter(5)
    result = [*splitter.feed(b"12345\n1234"), *splitter.feed(b"5678"), *splitter.feed(b"9\nnext\n")]
    assert [line if isinstance(line, bytes) else "too long" for line in result] == [b"12345", "too long", b"next"]
    assert isinstance(LineSplitter(1).feed(b"12\n")[0], LineTooLong)


async def test_an_editor_that_closed_its_end() -> None:
    """Writing fails, and the channel is marked as broken."""
    source, its_sink = os.pipe()
    its_source, sink = os.pipe()
    os.close(its_source)
    lines = LineChannel(source, sink, 100)
    with pytest.raises(BrokenPipeError):
        await lines.write(b"{}")
    assert lines.broken.is_set()
    os.close(its_sink)
    assert await asyncio.wait_for(lines.read(), 20) is None
    os.close(sink)


async def test_a_line_is_written_whole() -> None:
    """A line is written completely, even if its writer is cancelled and the line exceeds the pipe's buffer."""
    source, its_sink = os.pipe()
    its_source, sink = os.pipe()
    lines = LineChannel(source, sink, 100)
    writing = asyncio.create_task(lines.write(b"x" * 1_000_000))
    await asyncio.sleep(0)
    writing.cancel()
    after = asyncio.create_task(lines.write(b"y"))
    data = b""
    while not data.endswith(b"y\n"):
        data += await asyncio.to_thread(os.read, its_source, 1_000_000)
    await after
    assert data == b"x" * 1_000_000 + b"\ny\n"
    for end in (its_sink, its_source, sink):
        os.close(end)
