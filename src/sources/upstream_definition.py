"""A server's definition of a tool, and the tool's name and annotations in this daemon. Pure."""

import hashlib
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import Any, Final

import msgspec

from ..protocol.content_text import head_and_tail
from ..protocol.terminal_text import terminal_safe
from ..protocol.tool_call import Annotations
from ..tools import TOOL_NAME
from .source import SourceNote
from .source_tool_names import tool_name

_DIFF_LINES: Final = 400
"""The maximum number of lines of each definition that are compared, because a comparison takes quadratic time."""
_DIFF_CHARS: Final = 20_000
_JSON_PIECE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^{}\[\]:,"]+')

VERSION_CHARS: Final = 12
"""The number of characters of a definition's hash that operators repeat: 48 bits, which a server cannot match by
chance.
"""

_HINTS: Final = Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
"""MCP's defaults for tools without annotations."""


class UpstreamDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's definition of a tool: everything by which callers choose the tool, or that affects its calls."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    hints: dict[str, Any] = {}
    """MCP's annotations, unchanged."""
    origin: str = ""
    """Only for a skill of an agent: the URL of its calls, and the key that signed the agent's card."""
    title: str = ""
    shown: dict[str, Any] = {}
    """Further fields of an MCP server's listing (``ToolInfo.mcp``). They are not compared, because models do not read
    them.
    """
    as_task: bool = False
    """Whether the server runs the tool only as a task. This is not compared either."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the compared parts, independent of key order."""
        compared = msgspec.structs.replace(self, shown={}, as_task=False)
        return hashlib.sha256(msgspec.json.encode(compared, order="deterministic")).hexdigest()

    @property
    def version(self) -> str:
        """The beginning of ``digest``."""
        return self.digest[:VERSION_CHARS]

    @property
    def annotations(self) -> Annotations:
        """The server's hints, except ``openWorldHint``, which is always true.

        Another program may have external effects, so every call is journalled before it is sent (decision 44).
        """
        read_only = self._hint("readOnlyHint", default=_HINTS.read_only_hint)
        return Annotations(
            read_only_hint=read_only,
            destructive_hint=not read_only and self._hint("destructiveHint", default=_HINTS.destructive_hint),
            idempotent_hint=self._hint("idempotentHint", default=_HINTS.idempotent_hint),
            open_world_hint=True,
        )

    def _hint(self, hint: str, *, default: bool) -> bool:
        value = self.hints.get(hint)
        return value if isinstance(value, bool) else default


@dataclass(frozen=True, slots=True)
class UpstreamListing:
    """A server's tools with unique names, and notes about omitted tools."""

    tools: Sequence[UpstreamDefinition]
    notes: Sequence[SourceNote] = ()


def changes(before: UpstreamDefinition, now: UpstreamDefinition) -> str:
    """Returns the names of the parts that differ, for the operator."""
    parts = {
        "title": before.title != now.title,
        "description": before.description != now.description,
        "arguments": before.input_schema != now.input_schema,
        "result": before.output_schema != now.output_schema,
        "annotations": before.hints != now.hints,
        "address or key": before.origin != now.origin,
    }
    return " and ".join(part for part, differs in parts.items() if differs) or "definition"


def definition_diff(before: UpstreamDefinition, now: UpstreamDefinition) -> str:
    """Returns the differing lines, old lines after ``-`` and new lines after ``+``, bounded and safe for a terminal."""
    old, new = _lines(before), _lines(now)
    lines = list(unified_diff(old[:_DIFF_LINES], new[:_DIFF_LINES], lineterm="", n=1))[2:]
    if max(len(old), len(new)) > _DIFF_LINES:
        lines.append(f"[… only the first {_DIFF_LINES} lines are compared …]")
    return terminal_safe(head_and_tail("\n".join(lines), _DIFF_CHARS), keep="\n")


def _lines(definition: UpstreamDefinition) -> list[str]:
    """The lines of a definition: its title and description as text, the rest as JSON."""
    texts = [f"title: {definition.title}", *f"description: {definition.description}".splitlines()]
    rest = {
        "arguments": definition.input_schema,
        "result": definition.output_schema,
        "annotations": definition.hints,
        "address or key": definition.origin,
    }
    encoded = msgspec.json.encode(rest, order="deterministic").decode()
    return [*texts, *islice(_indented(encoded), _DIFF_LINES + 1)]


def _indented(encoded: str) -> Iterator[str]:
    """Yields the lines of a JSON text, with one line per value. A generator, because all lines of nested lists would
    take hundreds of times as much memory as the text.
    """
    line, depth, before = "", 0, ""
    for found in _JSON_PIECE.finditer(encoded):
        piece = found[0]
        if piece in {"}", "]"}:
            depth -= 1
            if before not in {"{", "["}:
                yield line
                line = " " * depth
        elif before in {"{", "[", ","}:
            yield line
            line = " " * depth
        line += f"{piece} " if piece == ":" else piece
        depth += piece in {"{", "["}
        before = piece
    yield line


def served_name(source: str, name: str, taken: Container[str]) -> str:
    """Returns this daemon's name of a server's tool: prefixed by the source's name if it is taken or invalid."""
    if TOOL_NAME.fullmatch(name) and name not in taken:
        return name
    return tool_name(source, re.sub(r"[^A-Za-z0-9_-]+", "_", name), taken)
