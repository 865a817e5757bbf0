"""A tool as its server defines it, and its name and annotations in this daemon. Pure."""

import hashlib
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ..protocol.tool_call import Annotations
from ..tools import TOOL_NAME
from .source import SourceNote
from .source_tool_names import tool_name

_HINTS: Final = Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
"""MCP's defaults for tools without annotations."""


class UpstreamDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's definition of a tool: everything that callers choose it by or that affects its calls."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    hints: dict[str, Any] = {}
    """MCP's annotations, as sent."""
    origin: str = ""
    """Only for a skill of an agent: where its calls go, and the key that signed the agent's card."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the definition, independent of key order."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @property
    def annotations(self) -> Annotations:
        """The server's hints, except ``openWorldHint``, which is always true.

        Another program may have effects outside, so every call is journalled before it is sent (decision 44).
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
    """A server's tools, each name once, and notes about omitted ones."""

    tools: Sequence[UpstreamDefinition]
    notes: Sequence[SourceNote] = ()


def changes(before: UpstreamDefinition, now: UpstreamDefinition) -> str:
    """Returns which parts differ, for the operator."""
    parts = {
        "description": before.description != now.description,
        "arguments": before.input_schema != now.input_schema,
        "result": before.output_schema != now.output_schema,
        "annotations": before.hints != now.hints,
        "address or key": before.origin != now.origin,
    }
    return " and ".join(part for part, differs in parts.items() if differs) or "definition"


def served_name(source: str, name: str, taken: Container[str]) -> str:
    """Returns this daemon's name of a server's tool: prefixed by the source's name if it is taken or invalid."""
    if TOOL_NAME.fullmatch(name) and name not in taken:
        return name
    return tool_name(source, re.sub(r"[^A-Za-z0-9_-]+", "_", name), taken)
