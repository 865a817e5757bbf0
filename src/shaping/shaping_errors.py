"""What can be wrong with a question that is asked of a value, all below ``ShapingError``::

ShapingError
├── LanguageError       a path, a filter or a template cannot be parsed: told before anything runs
├── NoListError         the value has no list, or several: told when the value is there
└── MissingValueError   a template refers to something that is not there, and has no default
"""

from typing import Final

_EXCERPT_CHARS: Final = 24
"""Of a text that cannot be parsed only so much is shown again."""


class ShapingError(Exception):
    """The value could not be shaped; the message is for whoever asked."""


class LanguageError(ShapingError):
    """A text is no path, filter or template.

    ``what`` says what is wrong, ``position`` where, counted in characters from 1, and ``example`` how it is written.
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
    """There is not the one list that the options need; ``candidates`` are the paths that ``at`` may name."""

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        self.candidates = candidates
        super().__init__(message)


class MissingValueError(ShapingError):
    """What a template refers to is not there; ``reference`` is its path."""

    def __init__(self, message: str, reference: str) -> None:
        self.reference = reference
        super().__init__(message)
