"""Decodes long JSON in pieces, for use in a thread, and bounds the number of its values. Pure.

A decoder in C holds Python's global lock until it returns, so decoding megabytes in a thread blocks the event loop as
much as decoding them on the loop. Long objects and arrays are therefore split into their elements without being decoded
(``msgspec.Raw``), and short runs of elements are decoded one after the other; other threads run in between.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from .text_pieces import decode_text

MAX_VALUES: Final = 100_000
"""The maximum number of values in one message from a client. A stage of the call path takes at most 0.5 µs per value
(decision 54).
"""
LONG_BYTES: Final = 32 * 1024
"""Longer texts are decoded outside of the event loop."""
PIECE_BYTES: Final = 64 * 1024
"""Pieces up to this size are decoded at once, before their values are counted; that takes at most 10 ms (decision
54).
"""
PIECE_OF_FEW_BYTES: Final = 1024 * 1024
"""The same size for a text with at most ``MAX_VALUES`` values; that takes at most 25 ms."""
MAX_LEVELS: Final = 32
"""The maximum number of levels at which a text is split. Each level costs a pass over the whole text."""
MAX_INTEGER_BITS: Final = 1024
"""The size of the largest double. Reading and writing an integer takes time quadratic in its length."""


class TooManyValuesError(ValueError):
    """The text has more values than allowed."""


class TooComplexError(ValueError):
    """The text has long values at too many levels, or an integer that is too long; the message says which."""


def finite(text: str) -> float:
    """Parses a JSON number. It takes 0.5 µs; msgspec takes up to 12 µs for a large exponent.

    Raises:
        ValueError: the number does not fit into a double.
    """
    number = float(text)
    if number - number != 0:
        raise ValueError("Number out of range")
    return number


_TOO_MANY: Final = "it has too many values"
_LONG_NUMBER: Final = re.compile(rb"[0-9]{300}")
_decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(Any, float_hook=finite).decode
_items_of: Final[Callable[[bytes], list[msgspec.Raw]]] = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields_of: Final[Callable[[bytes], dict[str, msgspec.Raw]]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_in_pieces(data: bytes, *, max_values: int | None = MAX_VALUES) -> Any:
    """Decodes JSON of any length with at most ``max_values`` values; each 64 bits of an integer count as another value.
    None means no limit, for the daemon's own texts.

    Raises:
        msgspec.DecodeError: ``data`` is not JSON.
        TooManyValuesError: it has more than ``max_values`` values.
        TooComplexError: it cannot be split into short pieces.
        RecursionError: it is nested too deeply.
    """
    return _PiecewiseDecoder(data, max_values).value_of(data, MAX_LEVELS)


def has_few_values(data: bytes) -> bool:
    """Whether a text has no more than ``MAX_VALUES`` commas between values."""
    try:
        _check_commas(data, MAX_VALUES)
    except TooManyValuesError:
        return False
    return True


def has_few_parts(data: bytes) -> bool:
    """Whether Python's own parser, which accepts more than msgspec, needs at most about 30 ms for a text. Long strings
    are cheap; values and escapes are expensive.
    """
    return sum(data.count(part) for part in (b",", b"[", b"{", b"\\")) <= MAX_VALUES


class _PiecewiseDecoder:
    def __init__(self, data: bytes, max_values: int | None) -> None:
        # Each value except the first follows one of these characters. Those in strings count too, so this is an upper
        # bound.
        most = 1 + data.count(b",") + data.count(b"[") + data.count(b"{")
        self._piece_bytes = PIECE_OF_FEW_BYTES if most <= MAX_VALUES else PIECE_BYTES
        self._unlimited = max_values is None
        self._counts = max_values is not None and most > max_values
        self._left = most if max_values is None else max_values

    def value_of(self, piece: bytes, levels: int) -> Any:
        opening = piece[:1] if piece[:1] in b'[{"' else piece.lstrip()[:1]
        if len(piece) > PIECE_BYTES and piece[:1] == piece[-1:] == b'"':
            self._take(1)
            return decode_text(piece, _decode)
        if len(piece) <= self._piece_bytes or opening not in {b"[", b"{"}:
            return self._whole(piece)
        if levels == 0:
            raise TooComplexError(f"long values are nested more than {MAX_LEVELS} levels deep")
        if self._counts:
            self._take(1)
            _check_commas(piece, self._left)
        if opening == b"[":
            return self._items(_items_of(piece), levels - 1)
        return {key: self.value_of(bytes(part), levels - 1) for key, part in _fields_of(piece).items()}

    def _items(self, parts: list[msgspec.Raw], levels: int) -> list[Any]:
        values: list[Any] = []
        run: list[bytes] = []
        run_bytes = 0
        for part in map(bytes, parts):
            if run_bytes + len(part) > self._piece_bytes:
                values += self._run(run)
                run, run_bytes = [], 0
            if len(part) > self._piece_bytes:
                values.append(self.value_of(part, levels))
            else:
                run.append(part)
                run_bytes += len(part) + 1
        return values + self._run(run)

    def _run(self, parts: list[bytes]) -> list[Any]:
        """The values of short elements."""
        values: list[Any] = self._whole(b"[%b]" % b",".join(parts), own=0) if parts else []
        return values

    def _whole(self, piece: bytes, *, own: int = 1) -> Any:
        """The value of a piece, decoded at once. Values are counted in Python, so that other threads run meanwhile.
        ``own`` is 0 for a list that exists only to decode its elements together.
        """
        value = _decode(piece)
        if self._unlimited:
            return value
        if not self._counts and (isinstance(value, str) or not _LONG_NUMBER.search(piece)):
            return value
        self._take(own)
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict | list):
                self._take(len(part))
                waiting.extend(part.values() if isinstance(part, dict) else part)
            elif isinstance(part, int):
                bits = part.bit_length()
                if bits > MAX_INTEGER_BITS:
                    raise TooComplexError(f"an integer has more than {MAX_INTEGER_BITS} bits")
                if bits > 64:
                    self._take(bits // 64)
        return value

    def _take(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise TooManyValuesError(_TOO_MANY)


def _check_commas(data: bytes, most: int) -> None:
    """Rejects a text with more commas between values than ``most``. Each such comma precedes a value, so this
    bounds the elements that are split off.

    Raises:
        TooManyValuesError: the text has more.
    """
    if data.count(b",") <= most:
        return
    start = commas = 0
    while start < len(data):  # from the end of one string to the next one
        quote = data.find(b'"', start)
        commas += data.count(b",", start, len(data) if quote < 0 else quote)
        if commas > most:
            raise TooManyValuesError(_TOO_MANY)
        start = _end_of_string(data, quote) if quote >= 0 else len(data)


def _end_of_string(data: bytes, quote: int) -> int:
    """The index after the string that begins with this quote."""
    while (quote := data.find(b'"', quote + 1)) >= 0:
        escapes = quote
        while data[escapes - 1] == ord("\\"):
            escapes -= 1
        if (quote - escapes) % 2 == 0:
            return quote + 1
    return len(data)
