"""What others wrote of their tools, fit to stand in code: on one line, short, and no word to a type checker. Pure."""

import re
from typing import Final

from ...protocol.terminal_text import terminal_safe

_TO_CHECKERS: Final = re.compile(r"(type|mypy|ty|pyright|pylint|ruff|noqa|fmt|isort|coding)\b", re.IGNORECASE)
"""How comments begin that are instructions to some program."""


def first_sentence(text: str, most_chars: int) -> str:
    """The first sentence without its full stop, on one line, cut at a word where it is long."""
    line = " ".join(terminal_safe(text).split())
    sentence = line.partition(". ")[0]
    if len(sentence) <= most_chars:
        return sentence.removesuffix(".")
    return f"{sentence[: most_chars - 1].rsplit(' ', 1)[0]}…"


def comment(text: str, most_chars: int) -> str:
    """The first sentence as a comment, two spaces before it; empty where there is none."""
    said = first_sentence(text, most_chars)
    if not said:
        return ""
    return f"  # '{said}'" if _TO_CHECKERS.match(said) else f"  # {said}"


def docstring(text: str, most_chars: int) -> str:
    """The first sentence as a docstring; with backslashes or quotes in it, as Python writes such strings."""
    said = first_sentence(text, most_chars)
    if said and said[-1] not in ".!?:…":
        said += "."
    return repr(said) if "\\" in said or '"' in said else f'"""{said}"""'
