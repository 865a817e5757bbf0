"""The output of a program: stored up to a limit, shown without its middle if it is long."""

from collections.abc import Callable
from typing import Final, Literal

SHOWN_BYTES: Final = 32 * 1024
"""The largest output in an answer: some 8,000 tokens."""
MAX_OUTPUT_BYTES: Final = 4 * 1024 * 1024
"""A program that prints more is stopped."""


class ProgramOutput:
    """Collects the output of one program. A thread of the engine writes it; it is read after that thread has ended."""

    def __init__(self) -> None:
        self.on_limit: Callable[[], None] | None = None
        """Called once, by the writing thread, if the output exceeds the limit."""
        self._pieces: list[str] = []
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<ProgramOutput bytes={self._bytes}>"

    def write(self, _stream: Literal["stdout", "stderr"], text: str) -> None:
        """Append a piece, unless the output exceeds the limit."""
        if self._bytes > MAX_OUTPUT_BYTES:
            return
        self._bytes += len(text.encode())
        self._pieces.append(text)
        if self._bytes > MAX_OUTPUT_BYTES and self.on_limit is not None:
            self.on_limit()

    @property
    def text(self) -> str:
        """All stored output."""
        return "".join(self._pieces)

    @property
    def shown(self) -> str:
        """The output in an answer."""
        return cut_in_the_middle(self.text, SHOWN_BYTES)

    @property
    def truncated(self) -> bool:
        """Whether ``shown`` is less than ``text``."""
        return self._bytes > SHOWN_BYTES


def cut_in_the_middle(text: str, max_bytes: int) -> str:
    """The text, or its beginning and end with a note in between if it exceeds ``max_bytes``."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    half = max_bytes // 2
    head, tail = (part.decode(errors="ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[… {len(data) - 2 * half:,} bytes omitted …]\n{tail}"
