"""Assembles the model's tool calls from a response, whole or in pieces. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..protocol.tool_call import ToolCallPiece
from .completion import ToolInvocation
from .response_values import InvalidResponseError, as_mapping, as_text

MAX_TOOL_CALLS: Final = 1000
"""The maximum number of tool calls in one answer: eight times as many as a request may have functions."""


@dataclass(slots=True, eq=False)
class _Call:
    number: int
    vendor_id: str = ""
    id: str = ""
    """A unique id. Empty until the call is settled; afterwards its id and name no longer change."""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra_content: dict[str, Any] | None = None

    def add(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> tuple[str, bool]:
        """Adds a piece; returns its arguments, and whether it has extra content."""
        self.vendor_id = self.vendor_id or as_text(piece.get("id"))
        if not self.id:
            self.name += as_text(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        if arguments:
            self.arguments.append(arguments)
        extra = piece.get("extra_content")
        if isinstance(extra, Mapping):
            self.extra_content = dict(extra)
        return arguments, isinstance(extra, Mapping)

    def whole_arguments(self) -> str:
        return "".join(self.arguments)


class ToolCallAssembly:
    """The tool calls of one response.

    In OpenAI's format, each streamed piece has its call's index, and the first piece also has id and name. Some
    compatible servers omit the index, or give several calls the same index (github.com/vercel/ai/issues/14277), so an
    id takes precedence. Some send the name after arguments (github.com/vercel/ai/issues/14722), or in pieces.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}
        self._announced = 0
        self._ids: set[str] = set()

    def add(self, call: Any) -> None:
        """Adds a whole call.

        Raises:
            InvalidResponseError: the call is not an object, or there are too many.
        """
        piece = as_mapping(call, "tool_calls[]")
        self._begin().add(piece, as_mapping(piece.get("function") or {}, "tool_calls[].function"))

    def add_piece(self, piece: Any) -> tuple[ToolCallPiece, ...]:
        """Adds a piece of a streamed call. Returns the pieces that can be passed on, in the order of the calls. Joined,
        they are the beginning of ``calls``.

        A call is passed on once its id and name are complete, that is, with the first arguments after them or when
        another call begins.

        Raises:
            InvalidResponseError: the piece is not an object, or there are too many calls.
        """
        piece = as_mapping(piece, "tool_calls[]")
        function = as_mapping(piece.get("function") or {}, "tool_calls[].function")
        index = piece.get("index")
        call = self._call_of(
            as_text(piece.get("id")), as_text(function.get("name")), index if isinstance(index, int) else None
        )
        settled = bool(call.id)
        arguments, has_extra = call.add(piece, function)
        if call.vendor_id:
            self._by_id.setdefault(call.vendor_id, call)
        if not settled:
            return tuple(self._announce())
        extra = call.extra_content if has_extra else None
        return (ToolCallPiece(call.number, arguments=arguments, extra_content=extra),) if arguments or extra else ()

    def calls(self) -> tuple[ToolInvocation, ...]:
        """Returns the calls with unique ids, by which their results are sent back. (Some servers send no ids, or the
        same id for all calls.) Missing arguments become an empty object.
        """
        for call in self._calls[self._announced :]:
            self._settle(call)
        return tuple(
            ToolInvocation(call.id, call.name, call.whole_arguments() or "{}", call.extra_content)
            for call in self._calls
        )

    def _announce(self) -> Iterator[ToolCallPiece]:
        while self._announced < len(self._calls):
            call = self._calls[self._announced]
            is_last = call is self._calls[-1]
            if not call.name or (is_last and not (call.vendor_id and call.arguments)):
                return
            self._settle(call)
            self._announced += 1
            yield ToolCallPiece(call.number, call.id, call.name, call.whole_arguments(), call.extra_content)

    def _settle(self, call: _Call) -> None:
        """Gives a call its final id."""
        unique = call.vendor_id
        if not unique or unique in self._ids:
            unique = f"call_{call.number}"
        while unique in self._ids:
            unique += "_"
        self._ids.add(unique)
        call.id = unique

    def _begin(self) -> _Call:
        if len(self._calls) == MAX_TOOL_CALLS:
            raise InvalidResponseError(f"it has more than {MAX_TOOL_CALLS:,} tool calls")
        self._calls.append(call := _Call(len(self._calls)))
        return call

    def _call_of(self, call_id: str, name: str, index: int | None) -> _Call:
        last = self._calls[-1] if self._calls else None
        unnamed = None if index is None else self._by_index.get(index)
        if call_id:
            call = self._by_id.get(call_id)
            if call is None and unnamed is not None and not unnamed.vendor_id:
                call = unnamed
        elif index is not None:
            call = unnamed
        else:  # without an id and an index, a second name begins another call
            call = None if last is not None and name and last.name else last
        call = call or self._begin()
        if index is not None:
            self._by_index[index] = call
        return call


def _arguments(value: Any) -> str:
    """Returns the JSON text. Some servers send the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else as_text(value)
