"""A text and a position in it: the base of the parsers of paths, filters and templates."""

import re
from typing import Final

from .shaping_errors import LanguageError

_BLANKS: Final = re.compile(r"\s*")
_QUOTED: Final = {quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", re.DOTALL) for quote in ("'", '"')}
_ESCAPE: Final = re.compile(r"""\\([\\'"])""")


class TextCursor:
    """Reads ``text`` from position ``at``, counted from 0; every error shows ``example``."""

    __slots__ = ("at", "example", "text")

    def __init__(self, text: str, example: str, at: int = 0) -> None:
        self.text = text
        self.at = at
        self.example = example

    @property
    def here(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def blanks(self) -> None:
        """Skip blanks."""
        if found := _BLANKS.match(self.text, self.at):
            self.at = found.end()

    def take(self, pattern: re.Pattern[str]) -> str:
        """Read and return the match of the pattern here; empty if there is none."""
        if not (found := pattern.match(self.text, self.at)):
            return ""
        self.at = found.end()
        return found.group()

    def skip(self, sign: str) -> bool:
        """Read ``sign`` if it is next; returns whether it was."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def quoted(self) -> str:
        """Read the quoted text that starts here.

        A backslash escapes a quote or a backslash; before other characters it is literal, so that patterns need no
        double backslashes.
        """
        if not (found := _QUOTED[self.here].match(self.text, self.at)):
            raise self.error(f"the quote {self.here} is not closed")
        self.at = found.end()
        return _ESCAPE.sub(r"\1", found[1])

    def error(self, what: str, *, at: int | None = None, example: str = "") -> LanguageError:
        """A ``LanguageError`` for this position, or for ``at``."""
        return LanguageError(what, self.text, (self.at if at is None else at) + 1, example or self.example)


def quote(text: str) -> str:
    """``text`` in quotes, such that ``TextCursor.quoted`` reads it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
