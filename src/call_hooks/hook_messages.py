"""The questions to hooks and their answers, as JSON objects. Pure.

A question is the same over HTTP and for a program, except for the field ``id``, which matches a program's answers with
its questions.
"""

from typing import Any, Final

import msgspec

from ..protocol.error_codes import ToolError
from ..protocol.json_pieces import finite
from ..protocol.tool_call import ContentBlock, Json, ToolResult
from .hook_settings import HookEvent

MAX_QUESTION_BYTES: Final = 8 * 1024**2
"""The maximum size of a question and of an answer. A longer question is not asked."""
MAX_WORDS: Final = 2000
"""The maximum length of a refusal's text for callers."""


class HookAnswerError(Exception):
    """A hook gave no usable answer; the message says why, without the answer's content."""


class HookedCall(msgspec.Struct, frozen=True):
    """The properties of a call for hooks, besides its arguments and its result."""

    id: str
    tool: str
    source: str
    """``toold``, or the package or source of the tool."""
    principal: str
    transport: str
    client: str
    toolset: str
    read_only: bool
    parent: str | None
    """The id of the parent call."""
    meta: dict[str, Json] | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)
    """The ``_meta`` for the MCP server. Hooks cannot change it."""


class HookedResult(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A result with MCP's field names. An error stays an error, but hooks can change its message and details."""

    content: list[dict[str, Json]]
    structured_content: Json | msgspec.UnsetType = msgspec.UNSET
    meta: dict[str, Json] | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")
    error: dict[str, Json] | msgspec.UnsetType = msgspec.UNSET


class HookQuestion(msgspec.Struct, omit_defaults=True):
    """A question to a hook."""

    event: HookEvent
    call: HookedCall
    arguments: dict[str, Json]
    result: HookedResult | msgspec.UnsetType = msgspec.UNSET
    id: int | msgspec.UnsetType = msgspec.UNSET


class HookAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The answer of a hook: an empty object allows the call."""

    id: int | msgspec.UnsetType = msgspec.UNSET
    refuse: str | msgspec.UnsetType = msgspec.UNSET
    """Refuses the call, or withholds its result, with this text."""
    arguments: dict[str, Json] | msgspec.UnsetType = msgspec.UNSET
    """The arguments to use instead."""
    result: HookedResult | msgspec.UnsetType = msgspec.UNSET
    """The result to return instead, as a whole."""


class _Id(msgspec.Struct):
    id: int


ALLOWED: Final = HookAnswer()
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(HookAnswer, float_hook=finite).decode
_decode_id: Final = msgspec.json.Decoder(_Id).decode


def encoded(question: HookQuestion) -> bytes:
    """The question as JSON, on one line.

    Raises:
        HookAnswerError: the question is too long, or is not JSON.
    """
    try:
        data = _encode(question)
    except (TypeError, ValueError, RecursionError):
        raise HookAnswerError("the question cannot be written as JSON") from None
    if len(data) > MAX_QUESTION_BYTES:
        raise HookAnswerError(f"the question has more than {MAX_QUESTION_BYTES // 1024**2} MiB")
    return data


def answer_id(line: bytes) -> int | None:
    """The ``id`` of a program's answer; None if the line is not an answer."""
    try:
        return _decode_id(line).id
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def read_answer(data: bytes, event: HookEvent) -> HookAnswer:
    """Reads the answer to a question about this event.

    Raises:
        HookAnswerError: the answer is invalid.
    """
    try:
        answer = _decode(data)
    except msgspec.ValidationError as error:  # the message names keys and types
        raise HookAnswerError(f"its answer is invalid: {error}") from None
    except (ValueError, RecursionError):
        raise HookAnswerError("its answer is not JSON") from None
    changes = [name for name in ("arguments", "result") if getattr(answer, name) is not msgspec.UNSET]
    allowed = "arguments" if event == "before" else "result"
    if any(name != allowed for name in changes):
        raise HookAnswerError(f"its answer is invalid: {event} a call, it can change {allowed} only")
    if answer.refuse is not msgspec.UNSET and changes:
        raise HookAnswerError("its answer is invalid: it has both refuse and a change")
    return answer


def hooked_result(result: ToolResult) -> HookedResult:
    """Converts a result for hooks.

    Raises:
        TypeError, ValueError, RecursionError: the result cannot be written as JSON.
    """
    error = msgspec.UNSET if result.error is None else msgspec.to_builtins(result.error)
    return HookedResult(msgspec.to_builtins(list(result.outputs)), result.structured, result.meta, error)


def changed_result(result: ToolResult, changed: HookedResult) -> ToolResult:
    """The result with a hook's content.

    Raises:
        HookAnswerError: the content is invalid, an error became a success, or a success became an error.
    """
    if (result.error is None) != (changed.error is msgspec.UNSET):
        raise HookAnswerError("its result must have error if, and only if, the tool's has it; refuse makes an error")
    try:
        outputs: tuple[ContentBlock, ...] = msgspec.convert(changed.content, tuple[ContentBlock, ...])
        error = result.error if result.error is None else _changed_error(result.error, changed.error)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise HookAnswerError(f"its result is invalid: {problem}") from None
    return msgspec.structs.replace(
        result, outputs=outputs, structured=changed.structured_content, meta=changed.meta, error=error
    )


class _ErrorChange(msgspec.Struct):
    message: str
    details: dict[str, Any] | None = None


def _changed_error(error: ToolError, changed: object) -> ToolError:
    change = msgspec.convert(changed, _ErrorChange)
    return msgspec.structs.replace(error, message=change.message, details=change.details)
