"""What a program prints: kept up to a bound, shown cut in the middle."""

from collections.abc import Callable
from typing import Final, Literal

SHOWN_BYTES: Final = 32 * 1024
"""Of what is printed, an answer has no more: some 8,000 tokens."""
KEPT_BYTES: Final = 4 * 1024 * 1024
"""A program that prints more is stopped."""


class ProgramOutput:
    """Collects what one program prints. Written to by a thread of the engine's, read when that has ended."""

    def __init__(self) -> None:
        self.on_flood: Callable[[], None] | None = None
        """Called once, by the thread that writes, when more is printed than is kept."""
        self._pieces: list[str] = []
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<ProgramOutput bytes={self._bytes}>"

    def write(self, _stream: Literal["stdout", "stderr"], text: str) -> None:
        """Take a piece, as long as there are not too many."""
        if self._bytes > KEPT_BYTES:
            return
        self._bytes += len(text.encode())
        self._pieces.append(text)
        if self._bytes > KEPT_BYTES and self.on_flood is not None:
            self.on_flood()

    @property
    def text(self) -> str:
        """All of it, as far as it was kept."""
        return "".join(self._pieces)

    @property
    def shown(self) -> str:
        """What an answer has of it."""
        return cut_in_the_middle(self.text, SHOWN_BYTES)

    @property
    def truncated(self) -> bool:
        """Whether ``shown`` is less than ``text``."""
        return self._bytes > SHOWN_BYTES


def cut_in_the_middle(text: str, most_bytes: int) -> str:
    """The beginning and the end of a text that has more than so many bytes, and between them how many are left out."""
    data = text.encode()
    if len(data) <= most_bytes:
        return text
    half = most_bytes // 2
    head, tail = (part.decode(errors="ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[… {len(data) - 2 * half:,} bytes left out …]\n{tail}"
