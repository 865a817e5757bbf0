"""Streams of agents: however they are cut, their events are the same, and their sizes are bounded."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import ResultTooLargeError
from toold.sources.a2a import remote_http
from toold.sources.a2a.remote_http import RemoteStream


class Pieces(httpx.AsyncByteStream):
    """A response body in these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def events_of(pieces: list[bytes], max_bytes: int = 1000) -> list[bytes]:
    stream = RemoteStream("far", httpx.Response(200, stream=Pieces(pieces)), AsyncExitStack(), max_bytes)
    events = []
    while (event := await stream.next_event()) is not None:
        events.append(event)
    return events


@given(st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(1, 80), max_size=6))
async def test_events_do_not_depend_on_how_they_arrive(end: str, cuts: list[int]) -> None:
    """Nor on the ends of lines; comments and numbers are not events, and data may have several lines."""
    lines = ["data: {", "data: }", "", ": alive", "", "id: 7", 'data:{"a":1}', "", "data: cut off"]
    text = end.join(lines).encode()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[begin:stop] for begin, stop in itertools.pairwise(places)]
    assert await events_of(pieces) == [b"{\n}", b'{"a":1}']


async def test_an_event_and_a_stream_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an event has ended or not."""
    for pieces in ([b"data: " + b"x" * 2000 + b"\n\n"], [b"data: ", b"x" * 500, b"x" * 600]):
        with pytest.raises(ResultTooLargeError):
            await events_of(pieces)
    monkeypatch.setattr(remote_http, "MAX_STREAM_BYTES", 5000)
    with pytest.raises(ResultTooLargeError):
        await events_of([b"data: x\n\n"] * 1000)
