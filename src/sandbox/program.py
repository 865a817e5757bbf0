"""A program, the functions that it may call, and the rewriting of its source for the engine. Pure.

The engine's exceptions have no attributes, and its ``asyncio.gather`` has no ``return_exceptions``. So that programs
can be written as usual, ``name.code`` and ``name.message`` become function calls, and ``asyncio.gather``, imported or
not, is replaced by the prelude's (decision 42). Line numbers do not change.
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
"""Unclosed strings end with their line or with the code, since searching for the end of each would take too long."""
_BEHIND_BRACES: Final = re.compile(r"\{\{|\{[^{}]*")
_READ_OR_TEXT: Final = re.compile(rf"'[^'\n]*'|\"[^\"\n]*\"|{_READ}")
"""For the braces of an f-string, in which quoted parts are separate strings."""
_AWAIT: Final = re.compile(rb"[^\w\x80-\xff.]await")
"""Includes the byte before ``await``, to exclude longer names that end with it."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of a program besides its timeout; all are settings (docs/limits.md)."""

    cpu_s: float
    """CPU time of the interpreter; waiting does not count."""
    memory_bytes: int
    calls: int
    """Total number of tool calls."""


@dataclass(frozen=True, slots=True)
class ProgramModule:
    """Functions that a program can call as ``await module.function(argument=…)``."""

    functions: frozenset[str]
    stub: Callable[[Sequence[str]], str]
    """Returns the source of a typed module with the signatures of the functions that the program names; a type checker
    would take long to read hundreds."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run."""

    code: str
    modules: Mapping[str, ProgramModule]


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """A program for the engine: a line of imports, and the rewritten code."""

    text: str
    code: str
    """The original code."""
    modules: Mapping[str, ProgramModule]
    """The modules that the code names."""
    words: frozenset[str]
    """All words in the code."""

    def line(self, fed: int) -> int:
        """The line of the original code that is line ``fed`` of the text fed to the engine."""
        return fed - 1

    def source(self, fed: int) -> str:
        """The source of that line."""
        lines = self.code.split("\n")
        return lines[fed - 2] if 1 < fed <= len(lines) + 1 else ""

    def line_at(self, offset: int) -> int:
        """The line in the original code that contains the byte ``offset`` of ``text``."""
        return self.line(self.text.encode()[:offset].count(b"\n") + 1)

    def await_before(self, offset: int) -> int | None:
        """The byte of ``text`` at which the ``await`` right before the byte ``offset`` starts; None without
        ``await``."""
        before = self.text.encode()[:offset].rstrip(b" \t\f\r\n\\(")
        return len(before) - len("await") if _AWAIT.fullmatch(before[-6:]) else None


def prepare(program: Program) -> PreparedProgram:
    """Rewrite a program for the engine.

    Raises:
        ProgramStoppedError: it is too long, or not Unicode text.
    """
    try:
        size = len(program.code.encode())
    except UnicodeEncodeError:
        raise ProgramStoppedError(
            "code", "The code contains half of a surrogate pair, which is not Unicode text."
        ) from None
    if size > MAX_CODE_BYTES:
        raise ProgramStoppedError(
            "code",
            f"The code has {size:,} bytes; at most {MAX_CODE_BYTES:,} are allowed. Pass data to tools instead.",
        )
    words = frozenset(re.findall(r"\w+", program.code))
    named = {name: module for name, module in program.modules.items() if name in words}
    text = f"import {', '.join(['asyncio', *named])}\n{rewritten(program.code)}"
    return PreparedProgram(text, program.code, named, words)


def rewritten(code: str) -> str:
    """The code with ``code``, ``message`` and ``gather`` replaced by the prelude's functions."""
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
    """The import without ``gather``, which the prelude defines; an alias of ``gather`` becomes an assignment."""
    imported = [name.split() for name in names.strip("() \t\n").split(",")]
    if not any(words[:1] == ["gather"] for words in imported):
        return head + names
    imports = [" ".join(words) for words in imported if words and words[0] != "gather"]
    renamed = [f"{words[-1]} = toold_gather" for words in imported if words[:2] == ["gather", "as"]]
    statements = [*([f"{head} {', '.join(imports)}"] if imports else []), *renamed]
    return ("; ".join(statements) or "pass") + "\n" * names.count("\n")


def _read(match: re.Match[str]) -> str:
    if not match["name"]:
        return match[0]
    return f"toold_failure({match['name']}).{match['field']}"
