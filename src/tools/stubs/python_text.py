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
"""The digits of the hash that makes an identifier unique; more if identifiers still collide."""
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


def unique_identifiers(names: Iterable[str], *, kind: str, reserved: frozenset[str] = frozenset()) -> dict[str, str]:
    """Maps names to unique identifiers, independently of the names' order.

    Valid identifiers stay unchanged. If several names would get the same identifier, the others get digits of their
    hash, so that an identifier does not change when other names are added or removed. ``kind`` (``tool``, ``argument``)
    is the prefix of names that do not start with a letter; ``reserved`` words are avoided.
    """
    preferred = {name: _identifier(name, kind, reserved) for name in names}
    uses = Counter(preferred.values())
    identifiers = {
        name: preference for name, preference in preferred.items() if preference == name or uses[preference] == 1
    }
    taken = set(identifiers.values())
    for name in sorted(preferred.keys() - identifiers.keys()):
        identifiers[name] = _with_digest(preferred[name], name, taken)
        taken.add(identifiers[name])
    return {name: identifiers[name] for name in preferred}


def is_identifier(name: str) -> bool:
    """Whether a name can be used in code unchanged: it is not a keyword, and Python does not mangle or normalise it."""
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


def _with_digest(preference: str, name: str, taken: set[str]) -> str:
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    candidates = (f"{preference}_{digest[:length]}" for length in range(DIGEST_CHARS, len(digest) + 1))
    return next(candidate for candidate in candidates if candidate not in taken)


_TO_CHECKERS: Final = re.compile(r"(type|mypy|ty|pyright|pylint|ruff|noqa|fmt|isort|coding)\b", re.IGNORECASE)
"""Comments that start like this are instructions to programs."""


def first_sentence(text: str, max_chars: int) -> str:
    """The first sentence without its full stop, on one line, truncated at a word if it is long."""
    line = " ".join(terminal_safe(text).split())
    sentence = line.partition(". ")[0]
    if len(sentence) <= max_chars:
        return sentence.removesuffix(".")
    return f"{sentence[: max_chars - 1].rsplit(' ', 1)[0]}…"


def comment(text: str, max_chars: int) -> str:
    """The first sentence as a comment after two spaces; empty if there is no text."""
    sentence = first_sentence(text, max_chars)
    if not sentence:
        return ""
    return f"  # '{sentence}'" if _TO_CHECKERS.match(sentence) else f"  # {sentence}"


def docstring(text: str, max_chars: int) -> str:
    """The first sentence as a docstring; with backslashes or quotes, as a string literal."""
    sentence = first_sentence(text, max_chars)
    if sentence and sentence[-1] not in ".!?:…":
        sentence += "."
    return repr(sentence) if "\\" in sentence or '"' in sentence else f'"""{sentence}"""'
