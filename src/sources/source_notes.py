"""What was mended in a document, what was left out of it, and what is held back, for `toold sources check`."""

from dataclasses import dataclass
from typing import Final, Literal

from .one_line import one_line

_WHERE_CHARS: Final = 200
_WHAT_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class SourceNote:
    """One thing that is wrong with a document or a server's tool, and what was made of it."""

    kind: Literal["mended", "left out", "quarantined"]
    where: str
    """The operation, such as ``GET /contacts/{id}``, or another place in the document."""
    what: str

    def __post_init__(self) -> None:
        """Both are other people's words as well."""
        object.__setattr__(self, "where", one_line(self.where, _WHERE_CHARS))
        object.__setattr__(self, "what", one_line(self.what, _WHAT_CHARS))

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class SourceNotes:
    """Takes notes about one place, each once."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._notes: dict[SourceNote, None] = {}

    def mended(self, what: str) -> None:
        """Something is wrong, and was made to do."""
        self._notes[SourceNote("mended", self.where, what)] = None

    def left_out(self, what: str) -> None:
        """Something is wrong, and nothing could be made of it."""
        self._notes[SourceNote("left out", self.where, what)] = None

    def taken(self) -> tuple[SourceNote, ...]:
        """The notes so far."""
        return tuple(self._notes)
