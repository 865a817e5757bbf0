"""Assembles the model's tool calls from a response, whole or in pieces. Pure.

OpenAI identifies the pieces of a call by its index. Gemini and others send whole calls, all with the same index or with
none, and some servers send no ids.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .completion import ToolInvocation
from .response_values import as_text


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    arguments: str = ""
    extra_content: Mapping[str, Any] | None = None


class ToolCallAssembly:
    """The tool calls of one response."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}

    def add(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> None:
        """Adds a whole call, or a piece of one. The first piece of a call has its id and name; another id at the same
        index, or a name without an index, begins another call.
        """
        index, identity, name = _index(piece.get("index")), as_text(piece.get("id")), as_text(function.get("name"))
        call = self._by_index.get(index)
        if call is None or (identity and call.id and identity != call.id) or (index is None and name):
            call = self._by_index[index] = _Call(identity)
            self._calls.append(call)
        call.id = call.id or identity
        call.name += name
        call.arguments += _arguments(function.get("arguments"))
        extra = piece.get("extra_content")
        if isinstance(extra, Mapping):
            call.extra_content = extra

    def calls(self) -> tuple[ToolInvocation, ...]:
        """Returns the calls in their order. Missing ids are replaced, because results are matched by them; missing
        arguments are an empty object.
        """
        return tuple(
            ToolInvocation(call.id or f"call_{number}", call.name, call.arguments or "{}", call.extra_content)
            for number, call in enumerate(self._ordered())
        )

    def _ordered(self) -> list[_Call]:
        """Returns the calls by index if each has its own, else as they came."""
        indexes = [index for index in self._by_index if index is not None]
        if len(indexes) != len(self._calls):
            return self._calls
        return [self._by_index[index] for index in sorted(indexes)]


def _index(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _arguments(value: Any) -> str:
    """Returns the JSON text. Some servers send the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else as_text(value)
