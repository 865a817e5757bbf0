"""The headers of WebSocket frames (RFC 6455, 5.2), as far as the daemon handles them itself. Pure."""

from typing import Final

_TEXT: Final = 0x81
"""The first byte of an unfragmented text frame."""


def text_header(size: int) -> bytes:
    """The header of a text frame from the server whose payload has ``size`` bytes."""
    if size < 126:
        return bytes((_TEXT, size))
    if size < 0x10000:
        return bytes((_TEXT, 126, size >> 8, size & 0xFF))
    return bytes((_TEXT, 127)) + size.to_bytes(8)
