"""Assembles the model's tool calls from a response, whole or in pieces. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .completion import ToolInvocation
from .response_values import as_mapping, as_text


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra_content: dict[str, Any] | None = None

    def add(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> None:
        self.id = as_text(piece.get("id")) or self.id
        self.name += as_text(function.get("name"))
        self.arguments += _arguments(function.get("arguments"))
        extra = piece.get("extra_content")
        if isinstance(extra, Mapping):
            self.extra_content = dict(extra)


class ToolCallAssembly:
    """The tool calls of one response.

    By OpenAI's format, each streamed piece has its call's index, and the first one also id and name. Some compatible
    servers omit the index, or give several calls the same (github.com/vercel/ai/issues/14277), so an id decides.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def add(self, call: Any) -> None:
        """Adds a whole call.

        Raises:
            InvalidResponseError: the call is not an object.
        """
        self._add(self._begin(), call)

    def add_piece(self, piece: Any) -> None:
        """Adds a piece of a streamed call.

        Raises:
            InvalidResponseError: the piece is not an object.
        """
        piece = as_mapping(piece, "tool_calls[]")
        name = as_text(as_mapping(piece.get("function") or {}, "tool_calls[].function").get("name"))
        index = piece.get("index")
        self._add(self._call_of(as_text(piece.get("id")), name, index if isinstance(index, int) else None), piece)

    def calls(self) -> tuple[ToolInvocation, ...]:
        """Returns the calls with unique ids, by which their results are sent back; some servers send none, or one for
        all. Missing arguments are an empty object.
        """
        known: set[str] = set()
        calls = []
        for number, call in enumerate(self._calls):
            unique = call.id
            while not unique or unique in known:
                unique = f"call_{number}" if unique in {"", call.id} else f"{unique}_"
            known.add(unique)
            calls.append(ToolInvocation(unique, call.name, call.arguments or "{}", call.extra_content))
        return tuple(calls)

    def _add(self, call: _Call, piece: Any) -> None:
        piece = as_mapping(piece, "tool_calls[]")
        call.add(piece, as_mapping(piece.get("function") or {}, "tool_calls[].function"))

    def _begin(self) -> _Call:
        self._calls.append(call := _Call())
        return call

    def _call_of(self, call_id: str, name: str, index: int | None) -> _Call:
        last = self._calls[-1] if self._calls else None
        unnamed = None if index is None else self._by_index.get(index)
        if call_id:
            call = next((call for call in self._calls if call.id == call_id), None)
            if call is None and unnamed is not None and not unnamed.id:
                call = unnamed
        elif index is not None:
            call = unnamed
        else:  # without id and index, a second name begins another call
            call = None if last is not None and name and last.name else last
        call = call or self._begin()
        if index is not None:
            self._by_index[index] = call
        return call


def _arguments(value: Any) -> str:
    """Returns the JSON text. Some servers send the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else as_text(value)
