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
        """Adds a whole call, or a piece of one. The first piece of a call has its id and name."""
        index, identity, name = _index(piece.get("index")), as_text(piece.get("id")), as_text(function.get("name"))
        call = self._call_of(index, identity, name)
        if call is None:
            call = _Call(identity)
            self._calls.append(call)
        self._by_index[index] = call
        call.id = call.id or identity
        call.name += name
        call.arguments += _arguments(function.get("arguments"))
        extra = piece.get("extra_content")
        if isinstance(extra, Mapping):
            call.extra_content = extra

    def _call_of(self, index: int | None, identity: str, name: str) -> _Call | None:
        """Returns the call that the piece continues: that with its id, else that at its index, unless this has another
        id, or has a name already and there is no index.
        """
        same = next((call for call in self._calls if identity and call.id == identity), None)
        at_index = self._by_index.get(index)
        if same is not None or at_index is None:
            return same
        is_other = (identity and at_index.id) or (index is None and name and at_index.name)
        return None if is_other else at_index

    def calls(self) -> tuple[ToolInvocation, ...]:
        """Returns the calls in their order. Missing and repeated ids are replaced, because results are matched by them;
        missing arguments are an empty object.
        """
        known: set[str] = set()
        named = []
        for number, call in enumerate(self._ordered()):
            unique = call.id
            while not unique or unique in known:
                unique = f"call_{number}" if unique in {"", call.id} else f"{unique}_"
            known.add(unique)
            named.append(ToolInvocation(unique, call.name, call.arguments or "{}", call.extra_content))
        return tuple(named)

    def _ordered(self) -> list[_Call]:
        """Returns the calls by index if each has its own, else as they came."""
        indexes = [index for index in self._by_index if index is not None]
        if len(indexes) != len(self._calls) or len({id(call) for call in self._by_index.values()}) != len(indexes):
            return self._calls
        return [self._by_index[index] for index in sorted(indexes)]


def _index(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _arguments(value: Any) -> str:
    """Returns the JSON text. Some servers send the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else as_text(value)
