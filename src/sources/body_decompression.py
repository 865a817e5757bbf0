"""Reads response bodies and decompresses them up to a limit.

A few compressed bytes can expand to gigabytes, and nested encodings to any size. httpx cannot limit this, because it
decompresses whole chunks before their size is known.
"""

import zlib
from typing import Final

import httpx

_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32
_IDENTITY: Final = frozenset({"", "identity"})
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})


async def read_body(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    """Returns the body, truncated to ``max_bytes``, and whether it is complete.

    Raises:
        httpx.DecodingError: the encoding was not requested, or the data does not match it.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in _IDENTITY | _COMPRESSED:
        raise httpx.DecodingError(f"unexpected content-encoding {coding[:40]}")
    decompressor = _Decompressor() if coding in _COMPRESSED else None
    body = bytearray()
    async for part in response.aiter_raw():
        body += part if decompressor is None else decompressor.decompress(part, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), False
    return bytes(body), True


class _Decompressor:
    """Decompresses one body, chunk by chunk."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._started = False

    def decompress(self, part: bytes, max_bytes: int) -> bytes:
        """Returns at most ``max_bytes`` of the data. Accepts deflate without zlib's header, which some servers send
        (RFC 9110).
        """
        try:
            return self._inner.decompress(part, max_bytes)
        except zlib.error as error:
            if self._started:
                raise httpx.DecodingError(str(error)) from error
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
            self._started = True
            return self.decompress(part, max_bytes)
        finally:
            self._started = True
