"""Decodes server-sent events (html.spec.whatwg.org/multipage/server-sent-events.html). Pure.

``httpx`` also splits lines at characters such as U+2028, which JSON may contain unescaped.
"""

import re
from collections.abc import Iterator
from typing import Final

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class EventDecoder:
    """Decodes the bytes of a response, in pieces of any size, into the data of its events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yields the data of each event that is complete with this piece."""
        searched = max(0, len(self._rest) - 1)  # the carriage return at the end may be half of a line end
        self._rest += piece
        at = 0
        for end in _LINE_END.finditer(self._rest, searched):
            if end[0] == b"\r" and end.end() == len(self._rest):
                break  # a line feed may follow
            yield from self._line(self._rest[at : end.start()])
            at = end.end()
        self._rest = self._rest[at:]

    def end(self) -> Iterator[str]:
        """Yields the data of a last event without an empty line at its end, which some servers omit. The event may be
        cut off.
        """
        rest, self._rest = self._rest.rstrip(b"\r"), b""
        yield from self._line(rest)
        yield from self._line(b"")

    def _line(self, line: bytes) -> Iterator[str]:
        if not self._begun:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._begun = True
        if line:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
        elif self._data:
            data, self._data = b"\n".join(self._data), []
            yield data.decode("utf-8", "replace")
