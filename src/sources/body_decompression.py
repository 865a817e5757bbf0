"""Bodies of answers, unpacked no further than their bound: a few bytes can stand for gigabytes, and packed several
times over for any number, which httpx would unpack whole before anybody could count them.
"""

import zlib
from typing import Final

import httpx

_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32
_NOT_PACKED: Final = frozenset({"", "identity"})
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})


async def read_body(response: httpx.Response, most_bytes: int) -> tuple[bytes, bool]:
    """The body, and whether that is all of it: not more than ``most_bytes`` are read.

    Raises:
        httpx.DecodingError: it is packed in a way that nobody asked for, or not as it says.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in _NOT_PACKED | _PACKED:
        raise httpx.DecodingError(f"packed as {coding[:40]}")
    unpacking = _Unpacking() if coding in _PACKED else None
    body = bytearray()
    async for part in response.aiter_raw():
        body += part if unpacking is None else unpacking.take(part, most_bytes + 1 - len(body))
        if len(body) > most_bytes:
            return bytes(body[:most_bytes]), False
    return bytes(body), True


class _Unpacking:
    """One packed body on its way."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._begun = False

    def take(self, part: bytes, most_bytes: int) -> bytes:
        """What this part is, as far as so many bytes; some call deflate what has no header of zlib's (RFC 9110)."""
        try:
            return self._inner.decompress(part, most_bytes)
        except zlib.error as error:
            if self._begun:
                raise httpx.DecodingError(str(error)) from error
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
            self._begun = True
            return self.take(part, most_bytes)
        finally:
            self._begun = True
