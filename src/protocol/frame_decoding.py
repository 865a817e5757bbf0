"""Decodes the bytes of one frame into a typed frame, or into the error for its sender. Pure; never raises.

Short frames are decoded at once on the event loop, long frames in pieces in a thread.
"""

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, get_args

import msgspec

from .error_codes import InvalidRequestError, ProtocolError, ToolError
from .frames import MAX_REQUEST_ID_CHARS, MAX_REQUEST_IDS, CallTool, ClientFrame, canonical_tool_name
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
from .name_suggestions import close_names, did_you_mean
from .questions.client_question import known_kinds
from .request_meta import passed_meta
from .tool_call import RequestId, ToolCall
from .trace_context import usable_traceparent

_decode: Final[Callable[[str | bytes], ClientFrame]] = msgspec.json.Decoder(ClientFrame, float_hook=finite).decode
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_ID_BITS: Final = 1024
"""The size limit of a numeric request id: the size of the largest double."""
_LONGEST_ID_BYTES: Final = 6 * MAX_REQUEST_ID_CHARS + 2
"""Allows for an escape for each character of an id."""
_CALL_OPS: Final = ("call_tool", "tool_call")
OPS: Final = tuple(sorted(str(frame.__struct_config__.tag) for frame in get_args(ClientFrame)))
"""Every op that a client may send."""


class _Envelope(msgspec.Struct):
    """The fields that address a frame, undecoded. Other fields are skipped."""

    op: msgspec.Raw = msgspec.Raw()
    request_id: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode


class FrameRefusal(msgspec.Struct, frozen=True):
    """A frame that is rejected with an error, without any other effect."""

    error: ToolError
    request_id: RequestId | None = None
    """The frame's request id, if it was readable."""
    call: bool = False
    """Whether the frame was a call, so that the answer is a ``call_tool_res``; otherwise it is an ``error`` frame."""
    echo_id: bool = False
    """Whether the client sent the id as ``id``. The answer then has it under both names."""


def refuse_binary() -> FrameRefusal:
    """Rejects a binary frame."""
    return FrameRefusal(_protocol_error("Binary frames are not supported; send the JSON object in a text frame."))


def decode_client_frame(data: bytes) -> ClientFrame | FrameRefusal:
    """Decodes, at once, the payload of a text frame that ``is_quick``."""
    try:
        return _decode(data) if len(data) <= LONG_BYTES else _frame(decode_long_texts(data))
    except msgspec.DecodeError as error:
        return _diagnose(data, error)
    except UnicodeDecodeError as error:
        return FrameRefusal(_protocol_error(f"The frame is not UTF-8: {error.reason} at byte {error.start}."))
    except RecursionError:
        return FrameRefusal(_protocol_error(_TOO_DEEP))


def decode_long_frame(data: bytes) -> ClientFrame | FrameRefusal:
    """``decode_client_frame`` for a frame of any length, with at most ``MAX_VALUES`` values. No step takes more
    than some 25 ms, so a thread that calls this lets other threads run.
    """
    try:
        value = decode_in_pieces(data)
    except TooManyValuesError:
        return _refuse_long(data, f"The frame has more than {MAX_VALUES} values; send the data in several calls.")
    except TooComplexError as error:
        return _refuse_long(data, f"The frame is too complex: {error}.")
    except msgspec.DecodeError as error:
        return _diagnose(data, error)
    except UnicodeDecodeError as error:
        return FrameRefusal(_protocol_error(f"The frame is not UTF-8: {error.reason}."))
    except RecursionError:
        return FrameRefusal(_protocol_error(_TOO_DEEP))
    return _frame(value)


def _frame(value: object) -> ClientFrame | FrameRefusal:
    """The frame of a decoded JSON text."""
    try:
        frame: ClientFrame = msgspec.convert(value, ClientFrame)
    except msgspec.ValidationError as error:
        return _diagnose_value(value, error)
    return frame


def _refuse_long(data: bytes, message: str) -> FrameRefusal:
    """Rejects a frame that is JSON, under its request id."""
    value: dict[str, Any] = {}
    with suppress(msgspec.DecodeError, RecursionError):
        envelope = _decode_envelope(data)
        for name in _Envelope.__struct_fields__:
            part = bytes(getattr(envelope, name))
            if part and len(part) <= _LONGEST_ID_BYTES:
                value[name] = json.loads(part)
    request_id, echo_id = _readable_id(value)
    call = value.get("op") in _CALL_OPS and _id_is_usable(value)
    return FrameRefusal(_invalid_request(message), request_id, call=call, echo_id=echo_id)


def tool_call(frame: CallTool, frame_bytes: int, *, make_id: Callable[[], str]) -> ToolCall | FrameRefusal:
    """Converts a ``call_tool`` frame to a call, or rejects it. Fields may have their older names.

    ``make_id`` generates the request id if the client sent none.
    """
    echo_id = frame.id is not None
    request_id = frame.request_id if frame.request_id is not None else frame.id
    if request_id is not None and not _can_be_echoed(request_id):
        message = f"request_id: longer than {MAX_REQUEST_ID_CHARS} characters, or {_MAX_ID_BITS} bits for a number."
        return FrameRefusal(_invalid_request(message))
    name = frame.name if frame.name is not None else _alias_name(frame.tool)
    if not name:
        message = "name: missing. Give the name of a tool; list_tools lists them."
        return FrameRefusal(_invalid_request(message), request_id, call=True, echo_id=echo_id)
    if frame.timeout_ms is not None and not frame.timeout_ms > 0:
        message = f"timeout_ms: {frame.timeout_ms:g} is not a positive number of milliseconds."
        return FrameRefusal(_invalid_request(message), request_id, call=True, echo_id=echo_id)
    arguments = frame.arguments if frame.arguments is not None else {}
    return ToolCall(
        make_id() if request_id is None else request_id,
        canonical_tool_name(name),
        arguments,
        frame.timeout_ms,
        frame_bytes,
        frame.on_disconnect,
        echo_id,
        traceparent=None if frame.traceparent is None else usable_traceparent(frame.traceparent),
        answers=() if frame.answers is None else known_kinds(frame.answers),
        meta=None if frame.meta is None else passed_meta(frame.meta),
    )


def request_key(request_id: RequestId) -> str:
    """Returns a key that is unique per request id: ``7`` and ``"7"`` differ, and so do ``7`` and ``7.0``."""
    return f"s{request_id}" if isinstance(request_id, str) else f"n{request_id!r}"


def request_id_of(key: str) -> RequestId:
    """Returns the request id from which ``request_key`` made this key."""
    if key.startswith("s"):
        return key[1:]
    number = key[1:]
    return int(number) if number.lstrip("-").isdigit() else float(number)


def _alias_name(tool: dict[str, Any] | str | None) -> str | None:
    name = tool.get("name") if isinstance(tool, dict) else tool
    return name if isinstance(name, str) else None


def _diagnose(data: bytes, error: Exception) -> FrameRefusal:
    """Diagnoses an invalid frame. A second, laxer parse finds the request id, so that the error carries it. If that
    would take long, the error has no request id.
    """
    try:
        value = json.loads(data) if has_few_parts(data) else None
    except (ValueError, RecursionError):
        value = None
    if value is None and data.strip() != b"null":
        return FrameRefusal(_protocol_error(_not_json(error)))
    return _diagnose_value(value, error)


def _diagnose_value(value: object, error: Exception) -> FrameRefusal:
    if not isinstance(value, dict):
        message = f"The frame is {_json_type(value)}; send one JSON object with an op."
        return FrameRefusal(_protocol_error(message))
    request_id, echo_id = _readable_id(value)
    op = value.get("op")
    if not isinstance(op, str):
        return FrameRefusal(
            _protocol_error(f"op: missing, or not a string. Valid ops are {', '.join(OPS)}."), request_id
        )
    if op not in OPS:
        hint = did_you_mean(close_names(op, OPS, n=1)) or f"valid ops are {', '.join(OPS)}."
        return FrameRefusal(_protocol_error(f"op: {_quoted(op)} is unknown; {hint}"), request_id)
    call = op in _CALL_OPS and _id_is_usable(value)
    return FrameRefusal(_invalid_request(_field_message(str(error))), request_id, call=call, echo_id=echo_id)


def _readable_id(value: dict[str, Any]) -> tuple[RequestId | None, bool]:
    for name in ("request_id", "id"):
        field_value = value.get(name)
        if isinstance(field_value, str | int | float) and not isinstance(field_value, bool):
            return (field_value if _can_be_echoed(field_value) else None), name == "id"
    return None, False


def _can_be_echoed(request_id: RequestId) -> bool:
    if isinstance(request_id, str):
        return len(request_id) <= MAX_REQUEST_ID_CHARS and (request_id.isascii() or not _SURROGATE.search(request_id))
    if isinstance(request_id, int):
        return request_id.bit_length() <= _MAX_ID_BITS
    return math.isfinite(request_id)


def _id_is_usable(value: dict[str, Any]) -> bool:
    """Whether a ``call_tool_res`` can be addressed: the id is readable, or absent, so that the server generates one."""
    return _readable_id(value)[0] is not None or (value.get("request_id") is None and value.get("id") is None)


_TOO_DEEP: Final = "The frame is nested too deeply."
_TOO_MANY_IDS: Final = f"Expected `array` of length <= {MAX_REQUEST_IDS}"
_AT = re.compile(r"^(?P<what>.*) - at `\$\.?(?P<path>.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$")
_WRONG_TYPE = re.compile(r"^Expected `(?P<types>.*)`, got `(?P<got>.*)`$")
_TYPES: Final = {
    "int": "a number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}
"""msgspec's type names → JSON's; null is the same in both."""
_CHOICES: Final = {"on_disconnect": "keep or cancel"}


def _field_message(message: str) -> str:
    """``Expected `object`, got `array` - at `$.arguments``` → ``arguments: should be an object, not an array.``"""
    if missing := _MISSING.match(message):
        return f"{missing['name']}: missing."
    match = _AT.match(message)
    if match is None:
        return _bounded(message.replace("`", "")) + "."
    path, what = match["path"], match["what"]
    if path in _CHOICES:
        return f"{path}: should be {_CHOICES[path]}."
    if what == _TOO_MANY_IDS:
        return f"{path}: has more than {MAX_REQUEST_IDS} ids; send several frames."
    if wrong := _WRONG_TYPE.match(what):
        types = dict.fromkeys(_TYPES.get(kind, kind) for kind in wrong["types"].split(" | "))
        return f"{path}: should be {' or '.join(types)}, not {_TYPES.get(wrong['got'], wrong['got'])}."
    what = what.replace("`", "")
    return f"{path}: {_bounded(what[:1].lower() + what[1:])}."


def _json_type(value: object) -> str:
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "null" if value is None else "a boolean" if isinstance(value, bool) else "a number"


def _quoted(word: str) -> str:
    return repr(word if len(word) <= 60 else word[:57] + "…")


def _bounded(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "…"


def _not_json(error: Exception) -> str:
    return f"The frame is not JSON: {_bounded(str(error))}. Send one JSON object per frame."


def _protocol_error(message: str) -> ToolError:
    return ProtocolError(message).to_tool_error()


def _invalid_request(message: str) -> ToolError:
    return InvalidRequestError(message).to_tool_error()
