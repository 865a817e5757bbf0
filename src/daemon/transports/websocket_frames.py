"""Reads and writes text frames (RFC 6455, 5.2), which are most frames, without the library. Pure."""

from typing import Final

from websockets.frames import apply_mask  # type: ignore[attr-defined] # in C where that is available

_TEXT: Final = 0x81
"""The first byte of an unfragmented text frame."""
_MASKED: Final = 0x80
"""The bit of the second byte that marks a masked payload, as clients send it."""
_TWO_BYTES: Final = 126
"""The length that says that the actual one follows in two bytes."""
_EIGHT_BYTES: Final = 127
"""This value in the length field means that the length follows in eight bytes."""
_MASK_BYTES: Final = 4
_LONG_HEADER_BYTES: Final = 2 + 8 + _MASK_BYTES
_SMALL_BYTES: Final = 4 * 1024
_COLLECTED_BYTES: Final = 64 * 1024
"""After a small piece, the following ones are collected up to this size: a client may send single bytes, and each
object takes 50 bytes more than its content."""


def text_header(size: int) -> bytes:
    """The header of a text frame from the server whose payload has ``size`` bytes."""
    if size < _TWO_BYTES:
        return bytes((_TEXT, size))
    if size < 0x10000:
        return bytes((_TEXT, _TWO_BYTES, size >> 8, size & 0xFF))
    return bytes((_TEXT, _EIGHT_BYTES)) + size.to_bytes(8)


def leading_texts(data: bytes, max_bytes: int) -> tuple[list[bytes], int]:
    """The payloads of the text frames at the beginning of a client's data, and the offset of the rest.

    Only complete, unfragmented frames of up to ``max_bytes`` and 64 KiB count. The rest, if any, is for a full parser,
    which also detects invalid frames.
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


class LongText:
    """A text frame of more than 64 KiB that a client is sending. Each piece is unmasked as it arrives, while it is in
    the core's cache, and the pieces are joined once.
    """

    __slots__ = ("_mask", "_pieces", "received", "size")

    def __init__(self, size: int, mask: bytes) -> None:
        self.size: Final = size
        self.received = 0
        """The bytes so far."""
        self._mask = mask
        self._pieces: list[bytes | bytearray] = []

    @property
    def missing(self) -> int:
        """The bytes that have not arrived."""
        return self.size - self.received

    def add(self, piece: bytes) -> None:
        """Adds the next bytes of the payload, at most those that are missing."""
        turned = self.received % _MASK_BYTES
        unmasked = apply_mask(piece, self._mask[turned:] + self._mask[:turned])
        self.received += len(piece)
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, bytearray) and len(last) < _COLLECTED_BYTES:
            last += unmasked
        else:
            self._pieces.append(unmasked if len(unmasked) >= _SMALL_BYTES else bytearray(unmasked))

    def payload(self) -> bytes:
        """The payload, once nothing is missing."""
        return b"".join(self._pieces)


def begun_text(data: bytes, min_bytes: int, max_bytes: int) -> LongText | None:
    """The text frame at the beginning of ``data``, if its header is complete, its payload is not, and the payload has
    more than ``min_bytes`` (at least 64 KiB) and at most ``max_bytes``.
    """
    if len(data) < _LONG_HEADER_BYTES or data[0] != _TEXT or data[1] != _MASKED | _EIGHT_BYTES:
        return None
    mask = _LONG_HEADER_BYTES - _MASK_BYTES
    size = int.from_bytes(data[2:mask])
    if not min_bytes < size <= max_bytes or size <= len(data) - _LONG_HEADER_BYTES:
        return None
    text = LongText(size, data[mask:_LONG_HEADER_BYTES])
    text.add(data[_LONG_HEADER_BYTES:])
    return text
