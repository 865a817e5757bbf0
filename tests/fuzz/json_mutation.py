"""Changes values in JSON, so that the result is JSON too: almost every change of a byte makes JSON invalid."""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 0.5, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**40, 1e308, 5e-324, -0.0),
    *("", " ", "0", "a" * 600, "\x00", "\u00e9", "\U0001f600", "\u202e", "../..", "#/", "%00", "{{", "[*]"),
    *([], {}, [[]], [{}], {"": None}, [None, True, 0, ""]),
)


class JsonMutation:
    """Mutates the JSON on one line of an input; takes new values from other inputs."""

    def __init__(self, inputs: Iterable[bytes]) -> None:
        lines = (line for data in inputs for line in data.split(b"\n"))
        parts = [part for line in lines for _, _, part in _places([_decoded(line)])]
        self._values = [*ODD_VALUES, *parts]
        self._names = sorted({name for part in parts if isinstance(part, dict) for name in part})

    def mutate(self, data: bytes, draw: random.Random) -> bytes | None:
        """The input with one to three values changed; None if the drawn line has no JSON object or array."""
        lines = data.split(b"\n")
        number = draw.randrange(len(lines))
        value = _decoded(lines[number])
        if not isinstance(value, dict | list):
            return None
        root = [value]
        for _ in range(draw.randint(1, 3)):
            self._change(root, draw)
        lines[number] = msgspec.json.encode(root[0])
        return b"\n".join(lines)

    def _change(self, root: list[Any], draw: random.Random) -> None:
        holder, key, part = draw.choice(list(_places(root)))
        kind = draw.randrange(6)
        if kind == 0 and holder is not root:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict) and self._names:
            holder[draw.choice(self._names)] = holder.pop(key)
        elif kind == 2 and isinstance(part, list):
            part.extend(part[:50])
        elif kind == 3 and isinstance(part, dict) and self._names:
            part[draw.choice(self._names)] = self._copy(draw.choice(self._values))
        elif kind == 4:
            holder[key] = [part] if draw.randrange(2) else {draw.choice(self._names or ["a"]): part}
        else:
            holder[key] = self._copy(draw.choice(self._values))

    @staticmethod
    def _copy(value: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(value))


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None


def _places(root: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Every value below ``root``, with its container and its key or index there."""
    waiting: list[Any] = [root]
    while waiting:
        holder = waiting.pop()
        for key, part in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key, part
            if isinstance(part, dict | list):
                waiting.append(part)
