"""How large a value is once it is written out. Parts that templates share are small in memory and large in JSON."""

from typing import Any, Final

_PLACE_BYTES: Final = 8
"""Of an element or a field, whatever stands there: a reference, as CPython has it."""


def weight(value: Any, most: int) -> int:
    """About so many bytes, every part counted as often as it is used; looks no further once it is past ``most``."""
    waiting, seen = [value], 0
    while waiting and seen <= most:
        part = waiting.pop()
        if isinstance(part, str):
            seen += len(part)
        elif isinstance(part, list | dict):
            seen += _PLACE_BYTES * len(part)
            if seen > most:
                break
            if isinstance(part, dict):
                seen += sum(map(len, part))
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return seen
