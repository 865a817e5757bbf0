"""A tool as its server defines it, and what becomes of it here. Pure."""

import hashlib
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...protocol.tool_call import Annotations
from ...tools import TOOL_NAME
from ..source import SourceNote
from ..source_tool_names import tool_name

_HINTS: Final = Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
"""What MCP takes for granted of a tool that says nothing."""


class UpstreamDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server says of one of its tools: all that callers choose it by, and that decides how it is called."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    hints: dict[str, Any] = {}
    """MCP's annotations, as far as they were sent."""

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, whatever the order of keys."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @property
    def annotations(self) -> Annotations:
        """The server's hints, but for the one that would keep calls out of the journal: what another program does is
        the world's, so each call is on the disk before it is sent (decision 44).
        """
        read_only = self._says("readOnlyHint", default=_HINTS.read_only_hint)
        return Annotations(
            read_only_hint=read_only,
            destructive_hint=not read_only and self._says("destructiveHint", default=_HINTS.destructive_hint),
            idempotent_hint=self._says("idempotentHint", default=_HINTS.idempotent_hint),
            open_world_hint=True,
        )

    def _says(self, hint: str, *, default: bool) -> bool:
        said = self.hints.get(hint)
        return said if isinstance(said, bool) else default


@dataclass(frozen=True, slots=True)
class UpstreamListing:
    """All that a server lists, each name once, and what was left out of it."""

    tools: Sequence[UpstreamDefinition]
    notes: Sequence[SourceNote] = ()


def changes(before: UpstreamDefinition, now: UpstreamDefinition) -> str:
    """What differs, in a few words for the operator."""
    parts = {
        "description": before.description != now.description,
        "arguments": before.input_schema != now.input_schema,
        "result": before.output_schema != now.output_schema,
        "annotations": before.hints != now.hints,
    }
    return " and ".join(part for part, differs in parts.items() if differs) or "definition"


def served_name(source: str, name: str, taken: Container[str]) -> str:
    """What a server's tool is called here: as there, or with the source's name before it where that name is taken or
    is none that a tool may have.
    """
    if TOOL_NAME.fullmatch(name) and name not in taken:
        return name
    return tool_name(source, re.sub(r"[^A-Za-z0-9_-]+", "_", name), taken)
