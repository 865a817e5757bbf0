"""Patterns that callers write: RE2, which takes time linear in the text whatever the pattern is."""

from collections.abc import Callable
from typing import Final

import re2  # type: ignore[import-untyped]  # it has no types of its own, nor in typeshed

MAX_PATTERN_CHARS: Final = 1_000

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False  # else a caller's mistake is a line on our stderr
_OPTIONS.max_mem = 1024 * 1024  # bytes, an eighth of RE2's own: what is compiled longer is compiled to be slow


class PatternError(ValueError):
    """The text is no pattern of RE2's; the message says why."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text has the pattern anywhere in it, with case.

    Raises:
        PatternError: RE2 does not take it: it has no look-around and no back-references, on purpose.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"it has more than {MAX_PATTERN_CHARS} characters")
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except UnicodeEncodeError:
        raise PatternError("it holds half of a surrogate pair") from None
    except re2.error as error:
        raise PatternError(_told(error)) from None

    def matches(text: str) -> bool:
        # As bytes: of text the binding counts every offset anew.
        return search(text.encode(errors="replace")) is not None

    return matches


def _told(error: Exception) -> str:
    message = error.args[0] if error.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
