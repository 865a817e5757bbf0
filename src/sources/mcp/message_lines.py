"""A line of a server's output → a message, or an error for whoever waits for what cannot be read. Pure."""

import re
from typing import Final

import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from ..json_surrogates import replace_lone_surrogates

TOO_LONG: Final = -32091
UNREADABLE: Final = -32092
"""The JSON-RPC errors in place of answers that were left out: of codes that no server should use."""

HEAD_BYTES: Final = 64 * 1024
"""Of a line that is too long so much is looked at for whose it is, and as much of its end as ``TAIL_BYTES``."""
TAIL_BYTES: Final = 256

_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN: Final = re.compile(_STRING + rb'|[{}\[\]:,"]|[^\s{}\[\]:,"]+')
_ID_AT_THE_END: Final = re.compile(rb',\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*\}\s*$')


def read_line(line: bytes) -> SessionMessage | None:
    """The message; where it is an answer that cannot be read, an error in its place; None where it is nobody's."""
    try:
        return SessionMessage(_read(line))
    except ValueError:
        return in_place_of(line[:HEAD_BYTES], line[-TAIL_BYTES:], UNREADABLE, "the answer cannot be read")


def _read(line: bytes) -> JSONRPCMessage:
    try:  # three times as fast, and stricter: it takes no NaN
        return jsonrpc_message_adapter.validate_python(msgspec.json.decode(line), by_name=False)
    except (ValueError, RecursionError):
        return jsonrpc_message_adapter.validate_json(replace_lone_surrogates(line), by_name=False)


def in_place_of(head: bytes, tail: bytes, code: int, why: str) -> SessionMessage | None:
    """The error for the request that a message answers, by its begin and its end; None where it answers none that is
    known.
    """
    identity = answered(head, tail)
    if identity is None:
        return None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=identity, error=ErrorData(code=code, message=why)))


def answered(head: bytes, tail: bytes) -> int | str | None:
    """The id of the request that a message answers; what is called ``id`` further within is not taken for it."""
    identity: int | str | None = None
    answers = False
    depth, key, before = 0, b"", b""
    for found in _TOKEN.finditer(head):
        token = found[0]
        if token == b'"':  # a string that goes on past the head
            break
        if depth == 1 and token == b":":
            key = before
            answers = answers or key in {b'"result"', b'"error"'}
            if key == b'"method"':
                return None
        elif depth == 1 and before == b":" and key == b'"id"':
            identity = _identity(token)
        if answers and identity is not None:
            return identity
        depth += (token in {b"{", b"["}) - (token in {b"}", b"]"})
        before = token
    at_the_end = _ID_AT_THE_END.search(tail) if answers else None
    return None if at_the_end is None else _identity(at_the_end[1])


def _identity(token: bytes) -> int | str | None:
    if token.isdigit() and len(token) <= 18:
        return int(token)
    if token.startswith(b'"') and b"\\" not in token and len(token) <= 102:
        return token[1:-1].decode(errors="replace")
    return None
