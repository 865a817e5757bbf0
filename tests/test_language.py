"""Prose is plain technical English: documents, docstrings, comments, messages and command output.

In the tests and tools outside of ``src/``, only docstrings and comments are prose.

The words below are idioms that earlier texts used in place of the standard terms of docs/glossary.md.
"""

import io
import re
import token
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[1]

FORBIDDEN: Final[dict[str, str]] = {
    r"told": "say who sends, reports or returns what",
    r"tell(?:s|ing)? (?:of|it|who|whether|what|from|them)": "reports, says, distinguishes",
    r"to be told": "to receive, to learn",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"nobody(?:'s)?": "name the actor: no client, no caller, no one",
    r"whoever|who(?:ever)? (?:asks|waits|calls|reads|listens)": "the caller, the client, the waiter, the reader",
    r"whichever": "the one that, any",
    r"(?<!there )(?:is|are|was|were) no(?= [a-z])(?! longer| more| less)": "is not a, there is no",
    r"(?<!there )(?:is|are|was|were) (?-i:none)": "is not a, there is no",
    r"of (?:its|their|his) own(?! accord)": "its own X, a separate X",
    r"reckon\w*": "calculate, count, estimate",
    r"(?:go|goes|going|gone|went) on with": "continue, resume",
    r"as ever": "as before, as always",
    r"but for": "except, except for",
    r"any more(?! than)": "any longer",
    r"anew": "again",
    r"beside": "next to, besides, in addition to",
    r"roads?": "path, transport, pipeline",
    r"(?:the|this) house": "the project",
    r"in the words of": "with the message of",
    r"in good order": "cleanly",
    r"broken off|breaks off": "interrupted",
    r"brought (?:no|nothing)": "produced no",
    r"under way": "running, in progress, reserved",
    r"knows of": "knows",
    r"see(?:s)? to it": "ensures",
    r"hereby|thereby|therein|thereof|wherein|whereof": "use a plain clause",
    r"so (?:many|much|long) (?:at|as|of)": "up to N",
    r"stands? (?:behind|for itself|there)": "is in, follows",
    r"lies? (?:at|in|below|beside)": "is in",
    r"(?:calls|rows|requests|messages|frames) an? (?:second|minute|hour|day)": "per second, per minute",
    r"(?:one|a|an) (?:call|task|row|line|file|connection|permit) an? (?:call|connection|session|row|tool|day|source)": (
        "one X per Y"
    ),
}
"""Regular expressions of whole words, and what to write in place of them."""

ALLOWED: Final[dict[str, str]] = {}
"""Phrases that match a rule although they are plain English, with the reason."""

RULES: Final = [
    (re.compile(rf"(?<![\w`'-])(?:{words})(?![\w`-])", re.IGNORECASE), advice) for words, advice in FORBIDDEN.items()
]
_ANY_RULE: Final = re.compile(rf"(?<![\w`'-])(?:{'|'.join(FORBIDDEN)})(?![\w`-])")
"""All rules in one, for text in lower case: ten times faster than the rules one by one."""
_CODE_IN_MARKDOWN: Final = re.compile(r"`[^`]*`|\]\([^)]*\)")
_CODE_IN_PYTHON: Final = re.compile(r"``[^`]*``|`[^`]*`")
_STATEMENT_STARTS: Final = {token.NEWLINE, token.INDENT, token.DEDENT}
"""The tokens before a statement."""
_TEXT_TOKENS: Final = {token.STRING, token.COMMENT, getattr(token, "FSTRING_MIDDLE", token.STRING)}


class Line(NamedTuple):
    """A line of prose."""

    number: int
    text: str


def prose(path: Path) -> Iterator[Line]:
    """The prose of a file: strings and comments of Python, Markdown without code, other files as a whole."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python_prose(text, documentation_only=not path.is_relative_to(ROOT / "src"))
    elif path.suffix == ".md":
        yield from _markdown_prose(text)
    else:
        yield from (Line(number, line) for number, line in enumerate(text.splitlines(), 1))


def _python_prose(text: str, *, documentation_only: bool) -> Iterator[Line]:
    begins_statement = True
    for part in tokenize.generate_tokens(io.StringIO(text).readline):
        is_documentation = part.type == token.COMMENT or (part.type == token.STRING and begins_statement)
        if part.type not in {token.COMMENT, token.NL}:
            begins_statement = part.type in _STATEMENT_STARTS
        if is_documentation or (part.type in _TEXT_TOKENS and not documentation_only):
            for offset, line in enumerate(part.string.splitlines()):
                if " " in line.strip():
                    yield Line(part.start[0] + offset, _CODE_IN_PYTHON.sub("", line))


def _markdown_prose(text: str) -> Iterator[Line]:
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield Line(number, _CODE_IN_MARKDOWN.sub("", line))


def forbidden_words(text: str) -> Iterator[tuple[str, str]]:
    """The forbidden words of a line, each with the advice for it."""
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    for rule, advice in RULES:
        for match in rule.finditer(text):
            yield match[0], advice


def findings(path: Path) -> Iterator[str]:
    """``file:line: word: advice: the line`` for every forbidden word."""
    if not _ANY_RULE.search(path.read_text(encoding="utf-8").replace("None", "").lower()):
        return
    for number, text in prose(path):
        for word, advice in forbidden_words(text):
            yield f"{path.relative_to(ROOT)}:{number}: {word!r}: write: {advice}: {text.strip()[:100]}"


def files_with_prose() -> list[Path]:
    """The documents, the sources of the package, and the Python files around it."""
    sources = [path for suffix in ("py", "toml", "sql") for path in (ROOT / "src").rglob(f"*.{suffix}")]
    tools = [path for name in ("tests", "benchmarks", "scripts", "docker") for path in (ROOT / name).rglob("*.py")]
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *sources, *tools])


def test_prose_has_no_forbidden_words() -> None:
    """No prose has forbidden words."""
    lines = [line for path in files_with_prose() for line in findings(path)]
    if lines:
        pytest.fail("\n".join([f"{len(lines)} forbidden words or idioms:", *lines]), pytrace=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The client is told of it anew.", ["told", "anew"]),
        ("One task a connection; nobody waits.", ["One task a connection", "nobody"]),
        ("This is no error: there is no file, and None is returned.", ["is no"]),
        ("Returns None if there is no match. The token is no longer valid.", []),
        ("The broadcast is in roadmap.md.", []),
    ],
)
def test_words_are_found_as_whole_words(text: str, words: list[str]) -> None:
    """A rule matches whole words, in any case, and does not match parts of other words."""
    assert sorted(word for word, _ in forbidden_words(text)) == sorted(words)
