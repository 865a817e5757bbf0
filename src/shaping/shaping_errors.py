"""The errors of shaping, all below ``ShapingError``::

ShapingError
├── LanguageError       a path, filter or template cannot be parsed: raised before anything runs
├── NoListError         the value has no list, or several: raised when the value is known
└── MissingValueError   a template refers to a missing value and has no default
"""

from typing import Final

_EXCERPT_CHARS: Final = 24
"""The length of the excerpt of an invalid text in an error."""


class ShapingError(Exception):
    """The value could not be shaped; the message is for the caller."""


class LanguageError(ShapingError):
    """A text is not a valid path, filter or template.

    ``what`` describes the error, ``position`` counts characters from 1, and ``example`` shows valid syntax.
    """

    def __init__(self, what: str, text: str, position: int, example: str) -> None:
        self.what = what
        self.text = text
        self.position = position
        self.example = example
        rest = text[position - 1 :]
        shown = rest if len(rest) <= _EXCERPT_CHARS else f"{rest[:_EXCERPT_CHARS]}…"
        near = f"before {shown!r}" if rest else "at the end"
        super().__init__(f"{what} (position {position}, {near}); for example: {example}")


class NoListError(ShapingError):
    """The value does not have exactly one list; ``candidates`` are paths for ``at``."""

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        self.candidates = candidates
        super().__init__(message)


class MissingValueError(ShapingError):
    """A template refers to a missing value; ``reference`` is its path."""

    def __init__(self, message: str, reference: str) -> None:
        self.reference = reference
        super().__init__(message)
