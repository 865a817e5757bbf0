"""Decodes lines of a server's output into messages; an unreadable answer becomes an error for its request. Pure."""

import re
from typing import Final

import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from ...protocol.json_pieces import finite, has_few_values
from ..json_surrogates import replace_lone_surrogates
from .upstream_exchange import TOO_MANY_VALUES, UNREADABLE

HEAD_BYTES: Final = 64 * 1024
"""The bytes at the beginning of a long line that are searched for its request id; ``TAIL_BYTES`` at its end."""
TAIL_BYTES: Final = 256

_decode: Final = msgspec.json.Decoder(float_hook=finite).decode
_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN: Final = re.compile(_STRING + rb'|[{}\[\]:,"]|[^\s{}\[\]:,"]+')
_ID_AT_THE_END: Final = re.compile(rb',\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*\}\s*$')


def read_line(line: bytes) -> SessionMessage | None:
    """Returns the message, or an error in place of an unreadable answer; None if its request is unknown."""
    if not has_few_values(line):
        return error_for(line[:HEAD_BYTES], line[-TAIL_BYTES:], UNREADABLE, TOO_MANY_VALUES)
    try:
        return SessionMessage(_read(line))
    except ValueError:
        return error_for(line[:HEAD_BYTES], line[-TAIL_BYTES:], UNREADABLE, "it is not an MCP message")


def _read(line: bytes) -> JSONRPCMessage:
    try:  # three times as fast as json.loads, and stricter: it rejects NaN
        return jsonrpc_message_adapter.validate_python(_decode(line), by_name=False)
    except (ValueError, RecursionError):
        return jsonrpc_message_adapter.validate_json(replace_lone_surrogates(line), by_name=False)


def error_for(head: bytes, tail: bytes, code: int, message: str) -> SessionMessage | None:
    """Returns an error for the request that a message answers, by its beginning and end; None if the request is
    unknown.
    """
    request_id = request_id_of(head, tail)
    if request_id is None:
        return None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message)))


def request_id_of(head: bytes, tail: bytes) -> int | str | None:
    """Returns the id of the request that a message answers; nested ``id`` keys are ignored."""
    request_id: int | str | None = None
    answers = False
    depth, key, before = 0, b"", b""
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token == b'"':  # a string that continues past the head
            break
        if depth == 1 and token == b":":
            key = before
            answers = answers or key in {b'"result"', b'"error"'}
            if key == b'"method"':
                return None
        elif depth == 1 and before == b":" and key == b'"id"':
            request_id = _parse_id(token)
        if answers and request_id is not None:
            return request_id
        depth += (token in {b"{", b"["}) - (token in {b"}", b"]"})
        before = token
    at_the_end = _ID_AT_THE_END.search(tail) if answers else None
    return None if at_the_end is None else _parse_id(at_the_end[1])


def _parse_id(token: bytes) -> int | str | None:
    if token.isdigit() and len(token) <= 18:
        return int(token)
    if token.startswith(b'"') and b"\\" not in token and len(token) <= 102:
        return token[1:-1].decode(errors="replace")
    return None
