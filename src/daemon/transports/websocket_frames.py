"""The WebSocket frames (RFC 6455, 5.2) that the daemon writes and reads itself: texts, which are most frames. Pure."""

from typing import Final

from websockets.frames import apply_mask  # type: ignore[attr-defined] # in C where that is available

_TEXT: Final = 0x81
"""The first byte of an unfragmented text frame."""
_MASKED: Final = 0x80
"""The bit of the second byte that says that the payload is masked, as those of clients are."""
_TWO_BYTES: Final = 126
"""The length that says that the actual one follows in two bytes; above it, in eight."""


def text_header(size: int) -> bytes:
    """The header of a text frame from the server whose payload has ``size`` bytes."""
    if size < _TWO_BYTES:
        return bytes((_TEXT, size))
    if size < 0x10000:
        return bytes((_TEXT, _TWO_BYTES, size >> 8, size & 0xFF))
    return bytes((_TEXT, 127)) + size.to_bytes(8)


def leading_texts(data: bytes, max_bytes: int) -> tuple[list[bytes], int]:
    """The payloads of the text frames at the beginning of what a client has sent, and where the rest of it begins.

    Only complete, unfragmented frames of up to ``max_bytes`` and 64 KiB count. The rest, if there is any, is for
    a full parser, which also finds what is wrong with it.
    """
    texts: list[bytes] = []
    at, end = 0, len(data)
    while end - at >= 6 and data[at] == _TEXT:
        size, mask = data[at + 1] - _MASKED, at + 2
        if size == _TWO_BYTES:
            size, mask = data[mask] << 8 | data[mask + 1], mask + 2
        elif not 0 <= size < _TWO_BYTES:
            break
        payload = mask + 4
        if size > max_bytes or payload + size > end:
            break
        at = payload + size
        texts.append(apply_mask(data[payload:at], data[mask:payload]))
    return texts, at
