"""Response bodies, compressed and not."""

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest
from toold.sources.body_decompression import read_body

TEXT = b'{"name": "Ada"}' * 1000
RAW_DEFLATE = zlib.compressobj(wbits=-zlib.MAX_WBITS)
RAW = RAW_DEFLATE.compress(TEXT) + RAW_DEFLATE.flush()


class Body(httpx.AsyncByteStream):
    """A body in chunks."""

    def __init__(self, content: bytes, size: int) -> None:
        self._pieces = [content[start : start + size] for start in range(0, len(content), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def answer(content: bytes, coding: str, size: int = 65_536) -> httpx.Response:
    """A response whose body is unread."""
    return httpx.Response(200, headers={"content-encoding": coding} if coding else {}, stream=Body(content, size))


@pytest.mark.parametrize("size", [1, 65_536])
@pytest.mark.parametrize(
    ("content", "coding"),
    [
        (TEXT, ""),
        (TEXT, "identity"),
        (gzip.compress(TEXT), "gzip"),
        (gzip.compress(TEXT), "X-GZIP"),
        (zlib.compress(TEXT), "deflate"),
    ],
    ids=["plain", "identity", "gzip", "X-GZIP", "deflate"],
)
async def test_a_body_is_read_in_any_supported_encoding(content: bytes, coding: str, size: int) -> None:
    """In chunks of any size."""
    assert await read_body(answer(content, coding, size), 1_000_000) == (TEXT, True)


async def test_deflate_without_a_header_is_read_too() -> None:
    """Some servers send it, and browsers accept it."""
    assert await read_body(answer(RAW, "deflate"), 1_000_000) == (TEXT, True)


async def test_a_body_is_complete_up_to_its_limit() -> None:
    """One byte more is truncated."""
    packed = gzip.compress(TEXT)
    assert await read_body(answer(packed, "gzip"), len(TEXT)) == (TEXT, True)
    assert await read_body(answer(packed, "gzip"), len(TEXT) - 1) == (TEXT[:-1], False)


async def test_a_zip_bomb_is_decompressed_up_to_the_limit() -> None:
    """Not even one whole chunk of it."""
    bomb = gzip.compress(bytes(60_000_000))
    tracemalloc.start()
    try:
        body, whole = await read_body(answer(bomb, "gzip", 1_000_000), 100_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(body), whole) == (100_000, False)
    assert most < 5_000_000


@pytest.mark.parametrize(
    ("content", "coding"),
    [(gzip.compress(gzip.compress(TEXT)), "gzip, gzip"), (TEXT, "br"), (b"no gzip", "gzip")],
    ids=["twice", "brotli", "not gzip"],
)
async def test_unsupported_encodings_are_refused(content: bytes, coding: str) -> None:
    """Compressed twice, by another algorithm, or not as declared."""
    with pytest.raises(httpx.DecodingError):
        await read_body(answer(content, coding), 1_000_000)
