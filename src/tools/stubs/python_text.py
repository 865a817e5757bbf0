"""Python names, comments and docstrings from arbitrary text."""

import hashlib
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final

from ...protocol.terminal_text import terminal_safe

DIGEST_CHARS: Final = 4
"""What tells names apart that would be mended to the same one; more where these are the same too."""
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


def mended(names: Iterable[str], *, kind: str, reserved: frozenset[str] = frozenset()) -> dict[str, str]:
    """Each name → its identifier, no two the same, and the same whatever order the names come in.

    One that is an identifier already keeps it. Of several that would become the same one, each other gets some letters
    of its own hash, so that its name does not change as others come and go. ``kind`` (``tool``, ``argument``) opens
    those that do not open with a letter; ``reserved`` words are not taken.
    """
    wished = {name: _identifier(name, kind, reserved) for name in names}
    sharing = Counter(wished.values())
    given = {name: wish for name, wish in wished.items() if wish == name or sharing[wish] == 1}
    taken = set(given.values())
    for name in sorted(wished.keys() - given.keys()):
        given[name] = _told_apart(wished[name], name, taken)
        taken.add(given[name])
    return {name: given[name] for name in wished}


def is_identifier(name: str) -> bool:
    """Whether it can be written in code as it is, anywhere: no keyword, nothing that Python mangles or normalises."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("__")
        and unicodedata.is_normalized("NFKC", name)
    )


def camel(name: str) -> str:
    """``search_contacts`` → ``SearchContacts``; without underscores."""
    return "".join(word[0].upper() + word[1:] for word in _WORD.findall(name))


def _identifier(name: str, kind: str, reserved: frozenset[str]) -> str:
    text = "".join(char if f"a{char}".isidentifier() else "_" for char in name)
    if not unicodedata.is_normalized("NFKC", text):
        text = "".join(char if char.isascii() else "_" for char in text)
    if not text.strip("_"):
        return kind
    if text.startswith("_") or not text.isidentifier():
        text = f"{kind}_{text.lstrip('_')}"
    return f"{text}_" if keyword.iskeyword(text) or text in reserved else text


def _told_apart(wish: str, name: str, taken: set[str]) -> str:
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return next(
        told for length in range(DIGEST_CHARS, len(digest) + 1) if (told := f"{wish}_{digest[:length]}") not in taken
    )


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
