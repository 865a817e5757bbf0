"""JSON-RPC 2.0 as MCP and A2A use it: decodes and encodes messages. Pure."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .json_pieces import (
    LONG_BYTES,
    MAX_VALUES,
    TooComplexError,
    TooManyValuesError,
    decode_in_pieces,
    finite,
    has_few_parts,
)
from .long_texts import decode_long_texts

JsonRpcId = str | int

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""The code before the revision 2026-07-28, which uses ``INVALID_PARAMS`` instead."""
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

MAX_BATCH: Final = 32
"""The maximum number of messages in one batch."""

HTTP_STATUS: Final[Mapping[int, int]] = MappingProxyType(
    {
        PARSE_ERROR: 400,
        INVALID_REQUEST: 400,
        METHOD_NOT_FOUND: 404,
        INVALID_PARAMS: 400,
        INTERNAL_ERROR: 200,
        HEADER_MISMATCH: 400,
        MISSING_CLIENT_CAPABILITY: 400,
        UNSUPPORTED_VERSION: 400,
    }
)
"""The HTTP status of an error in the stateless revisions; earlier revisions answer requests with 200."""


class RpcRequest(msgspec.Struct, frozen=True, gc=False):
    """A message that needs an answer."""

    id: JsonRpcId
    method: str
    params: dict[str, Any]


class RpcNotification(msgspec.Struct, frozen=True, gc=False):
    """A message that needs no answer."""

    method: str
    params: dict[str, Any]


class RpcReply(msgspec.Struct, frozen=True, gc=False):
    """An answer to one of the server's requests."""

    id: JsonRpcId
    result: dict[str, Any] | None
    """None if the answer is an error."""
    error: dict[str, Any] | None = None


class MessageProblem(msgspec.Struct, frozen=True):
    """A JSON-RPC error."""

    code: int
    message: str
    data: Any = UNSET


class MalformedMessage(msgspec.Struct, frozen=True):
    """Data that is not a valid message."""

    problem: MessageProblem
    id: JsonRpcId | None = None
    """The message's id, if it was readable."""


Message = RpcRequest | RpcNotification | RpcReply | MalformedMessage


class _Wire(msgspec.Struct, frozen=True, gc=False):
    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: JsonRpcId | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET
    result: dict[str, Any] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class _Answer(msgspec.Struct, frozen=True, gc=False):
    id: JsonRpcId
    result: Any
    jsonrpc: str = "2.0"


class _Failure(msgspec.Struct, frozen=True, gc=False):
    id: JsonRpcId | None
    error: MessageProblem
    jsonrpc: str = "2.0"


class _Asked(msgspec.Struct, frozen=True, gc=False):
    id: JsonRpcId
    method: str
    params: Any = UNSET
    jsonrpc: str = "2.0"


class _Note(msgspec.Struct, frozen=True, gc=False):
    method: str
    params: Any
    jsonrpc: str = "2.0"


_decode: Final = msgspec.json.Decoder(_Wire, float_hook=finite).decode
_decode_any: Final = msgspec.json.Decoder(float_hook=finite).decode
_encode: Final = msgspec.json.Encoder().encode


def decode(body: bytes) -> Message | list[Message]:
    """Decodes the body of a POST, or one line, that ``is_quick``: a message, or a batch of messages. For a longer
    batch, returns the first ``MAX_BATCH + 1`` messages. Never raises.
    """
    try:
        return _message(_decode(body)) if len(body) <= LONG_BYTES else _convert_all(decode_long_texts(body))
    except msgspec.DecodeError:
        pass
    except RecursionError:
        return MalformedMessage(MessageProblem(PARSE_ERROR, "The message is nested too deeply."))
    except UnicodeDecodeError:  # inside a string; elsewhere msgspec raises its own error
        return MalformedMessage(MessageProblem(PARSE_ERROR, "The message is not UTF-8."))
    try:
        value = _decode_any(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _diagnosed(body, error)
    return _convert_all(value)


def decode_long(body: bytes) -> Message | list[Message]:
    """``decode`` for a body of any length, with at most ``MAX_VALUES`` values. No step takes more than some 25 ms, so a
    thread that calls this lets other threads run.
    """
    try:
        return _convert_all(decode_in_pieces(body))
    except TooManyValuesError:
        what = f"The message has more than {MAX_VALUES} values; send the data in several calls."
        return MalformedMessage(MessageProblem(INVALID_REQUEST, what))
    except TooComplexError as error:
        return MalformedMessage(MessageProblem(INVALID_REQUEST, f"The message is too complex: {error}."))
    except RecursionError:
        return MalformedMessage(MessageProblem(PARSE_ERROR, "The message is nested too deeply."))
    except UnicodeDecodeError:
        return MalformedMessage(MessageProblem(PARSE_ERROR, "The message is not UTF-8."))
    except msgspec.DecodeError as error:
        return _diagnosed(body, error)


def answer(request_id: JsonRpcId, result: Any) -> bytes:
    """Encodes the answer to a request.

    Raises:
        TypeError, ValueError, RecursionError: the result is not valid JSON data.
    """
    return _encode(_Answer(request_id, result))


def failure(request_id: JsonRpcId | None, problem: MessageProblem) -> bytes:
    """Encodes the error for a request that failed, or for an invalid message."""
    return _encode(_Failure(request_id, problem))


def request(request_id: JsonRpcId, method: str, params: Any = UNSET) -> bytes:
    """Encodes a request to the client."""
    return _encode(_Asked(request_id, method, params))


def notification(method: str, params: Any) -> bytes:
    """Encodes a notification to the client."""
    return _encode(_Note(method, params))


def event(message: bytes) -> bytes:
    """Wraps a message in one event of an SSE stream. Encoded JSON contains no line breaks."""
    return b"event: message\ndata: " + message + b"\n\n"


def _diagnosed(body: bytes, error: Exception) -> MalformedMessage:
    """Diagnoses invalid JSON. A second, laxer parse finds the request id, so that the answer can be addressed; over a
    pipe, the sender would otherwise wait forever.
    """
    what, value = f"The message is not JSON: {error}", None
    if has_few_parts(body):
        try:
            value = json.loads(body)
            if not _is_unicode(value):
                what = "A text of the message contains an unpaired surrogate, which is not valid Unicode."
        except (ValueError, RecursionError):
            value = None
    request_id = _id_of(value)
    return MalformedMessage(MessageProblem(PARSE_ERROR, what), request_id if _is_unicode(request_id) else None)


def _is_unicode(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _convert_all(value: object) -> Message | list[Message]:
    return list(map(_convert, value[: MAX_BATCH + 1])) if isinstance(value, list) else _convert(value)


def _convert(value: object) -> Message:
    try:
        return _message(msgspec.convert(value, _Wire))
    except msgspec.ValidationError as error:
        return MalformedMessage(
            MessageProblem(INVALID_REQUEST, f"This is not a JSON-RPC 2.0 message: {error}"), _id_of(value)
        )


def _id_of(value: object) -> JsonRpcId | None:
    request_id = value.get("id") if isinstance(value, dict) else None
    return request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None


def _message(wire: _Wire) -> Message:
    params = {} if wire.params is UNSET else wire.params
    if wire.method is not UNSET:
        if wire.id is not UNSET:
            return RpcRequest(wire.id, wire.method, params)
        return RpcNotification(wire.method, params)
    if wire.id is not UNSET and (wire.result is not UNSET or wire.error is not UNSET):
        error = None if wire.error is UNSET else wire.error
        return RpcReply(wire.id, None if wire.result is UNSET else wire.result, error)
    what = "This is not a JSON-RPC 2.0 message: it has no method, and neither a result nor an error with an id."
    return MalformedMessage(MessageProblem(INVALID_REQUEST, what), None if wire.id is UNSET else wire.id)
