"""A program, what it may call, and what is made of its text before the engine gets it. Pure.

The engine's exceptions have no attributes, and its ``asyncio.gather`` takes no ``return_exceptions``. So that programs
may be written as they would be elsewhere, ``name.code`` and ``name.message`` are read through a function, and
``asyncio.gather`` is our own, imported or not (decision 42). No line moves.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .sandbox_errors import ProgramStoppedError

MAX_CODE_BYTES: Final = 64 * 1024

_READ: Final = r"(?<![\w.])(?P<name>(?!self\b)[^\W\d]\w*)\.(?P<field>code|message)\b(?!\s*(?:=(?!=)|\())"
_CODE: Final = re.compile(
    rf"""
    (?P<text>
        (?P<f> \b (?: [fF][rR]? | [rR][fF] ) )?
        (?: \"{{3}} (?: \\. | (?!\"{{3}}) [^\\] )*+ (?: \"{{3}} )? | '{{3}} (?: \\. | (?!'{{3}}) [^\\] )*+ (?: '{{3}} )?
          | " (?: \\. | [^"\\\n] )*+ "? | ' (?: \\. | [^'\\\n] )*+ '? )
      | \# [^\n]*
    )
    | {_READ}
    | (?P<gather> (?<![\w.]) asyncio\.gather \b )
    | (?P<imports> (?<![\w.]) from [ \t]+ asyncio [ \t]+ import \b )
      (?P<names> [ \t]* \( [\w,\s]* \) | [\w, \t]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
"""A text that is not closed ends with its line or with the code: to look for an end for each quote would take long."""
_BEHIND_BRACES: Final = re.compile(r"\{\{|\{[^{}]*")
_READ_OR_TEXT: Final = re.compile(rf"'[^'\n]*'|\"[^\"\n]*\"|{_READ}")
"""Within the braces of an f-string: what is quoted there is a text of its own."""
_AWAIT: Final = re.compile(rb"[^\w\x80-\xff.]await")
"""With the byte before it; as no part of another name."""


@dataclass(frozen=True, slots=True)
class ProgramModule:
    """Functions that a program may call as ``await module.function(argument=…)``."""

    functions: frozenset[str]
    stub: Callable[[Sequence[str]], str]
    """The signatures of some of them as the source of a typed module; of those that a program names, since a type
    checker takes long to read hundreds."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be run."""

    code: str
    modules: Mapping[str, ProgramModule]


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """A program as the engine gets it: a line of imports, and the rewritten code below it."""

    text: str
    code: str
    """As it was written."""
    modules: Mapping[str, ProgramModule]
    """Those that it names."""
    words: frozenset[str]
    """All names in it."""

    def line(self, fed: int) -> int:
        """The line of the program's own text."""
        return fed - 1

    def source(self, fed: int) -> str:
        """What was written in that line."""
        lines = self.code.split("\n")
        return lines[fed - 2] if 1 < fed <= len(lines) + 1 else ""

    def line_at(self, offset: int) -> int:
        """The line of the program's own text in which the byte ``offset`` of ``text`` is."""
        return self.line(self.text.encode()[:offset].count(b"\n") + 1)

    def await_before(self, offset: int) -> int | None:
        """The byte of ``text`` where the ``await`` begins that stands right before the byte ``offset``, if one does."""
        before = self.text.encode()[:offset].rstrip(b" \t\f\r\n\\(")
        return len(before) - len("await") if _AWAIT.fullmatch(before[-6:]) else None


def prepare(program: Program) -> PreparedProgram:
    """The program, made ready for the engine.

    Raises:
        ProgramStoppedError: it is too long, or no text.
    """
    try:
        size = len(program.code.encode())
    except UnicodeEncodeError:
        raise ProgramStoppedError(
            "code", "The code holds half of a surrogate pair, which is no Unicode text."
        ) from None
    if size > MAX_CODE_BYTES:
        raise ProgramStoppedError(
            "code",
            f"The code has {size:,} bytes, and at most {MAX_CODE_BYTES:,} are taken; pass data to tools instead.",
        )
    words = frozenset(re.findall(r"\w+", program.code))
    named = {name: module for name, module in program.modules.items() if name in words}
    text = f"import {', '.join(['asyncio', *named])}\n{rewritten(program.code)}"
    return PreparedProgram(text, program.code, named, words)


def rewritten(code: str) -> str:
    """The code, with what the engine's exceptions and its ``asyncio`` do not have read through functions."""
    return _CODE.sub(_rewrite, code)


def _rewrite(match: re.Match[str]) -> str:
    if match["gather"]:
        return "toold_gather"
    if match["imports"]:
        return _imports(match["imports"], match["names"])
    if match["f"]:
        return _BEHIND_BRACES.sub(lambda inner: _READ_OR_TEXT.sub(_read, inner[0]), match[0])
    return _read(match)


def _imports(head: str, names: str) -> str:
    """Without ``gather``, which is there already, and would be the engine's; by another name it is ours."""
    imported = [name.split() for name in names.strip("() \t\n").split(",")]
    if not any(words[:1] == ["gather"] for words in imported):
        return head + names
    kept = [" ".join(words) for words in imported if words and words[0] != "gather"]
    renamed = [f"{words[-1]} = toold_gather" for words in imported if words[:2] == ["gather", "as"]]
    statements = [*([f"{head} {', '.join(kept)}"] if kept else []), *renamed]
    return ("; ".join(statements) or "pass") + "\n" * names.count("\n")


def _read(match: re.Match[str]) -> str:
    if not match["name"]:
        return match[0]
    return f"toold_failure({match['name']}).{match['field']}"
