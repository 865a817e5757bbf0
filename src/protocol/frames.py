"""All frames of the wire protocol as typed models; docs/protocol.md describes them. Unknown fields are ignored.

Client frames are in the union ``ClientFrame``, server frames in ``ServerFrame``; ``op`` is the tag.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from .error_codes import ToolError
from .questions.client_question import QuestionKind
from .tool_call import CallStatus, Json, Metadata, RequestId, ToolInfo

PROTOCOL_VERSION: Final = 1

CLOSE_NOT_JSON: Final = 4000
CLOSE_NOT_HELLO: Final = 4001
CLOSE_NO_HELLO: Final = 4002
CLOSE_UNAUTHORIZED: Final = 4003
CLOSE_SUPERSEDED: Final = 4004
CLOSE_STALE: Final = 4005
CLOSE_LIMIT: Final = 1008
CLOSE_NO_PONG: Final = 1011
CLOSE_RESTART: Final = 1012

MAX_REQUEST_ID_CHARS: Final = 512
"""Longer request ids are rejected, because ids are stored in memory, logs and audit rows."""

MAX_REQUEST_IDS: Final = 4096
"""The maximum number of ids in one frame: a session remembers as many calls (``session_calls.REMEMBERED_IDS``)."""

_SUFFIX = re.compile(r"[_-]EXAI[_-]WS.*$", re.DOTALL)


def canonical_tool_name(name: str) -> str:
    """Returns the tool's name without the suffix ``_EXAI-WS…`` (with ``_`` or ``-``) that older clients append."""
    return _SUFFIX.sub("", name) if "EXAI" in name else name


class _Frame(msgspec.Struct, tag_field="op", frozen=True, gc=False):
    """The base of all frames."""


_RequestIds = Annotated[list[RequestId], msgspec.Meta(max_length=MAX_REQUEST_IDS)]


# --- from the client -------------------------------------------------------------------------------------------------


class Hello(_Frame, tag="hello", frozen=True):
    """The first frame. The fields are loosely typed: ``handshake`` validates each one separately."""

    session_id: Any = None
    token: Any = None
    features: Any = None
    resume: Any = None
    toolset: Any = None
    client: Any = None


class CallTool(_Frame, tag="call_tool", frozen=True):
    """Call one tool. ``tool`` and ``id`` are older spellings of ``name`` and ``request_id``."""

    request_id: RequestId | None = None
    name: str | None = None
    arguments: dict[str, Any] | None = None
    timeout_ms: float | None = None
    on_disconnect: Literal["keep", "cancel"] | None = None
    id: RequestId | None = None
    tool: dict[str, Any] | str | None = None
    traceparent: Any = None
    """The caller's span. Loosely typed, because W3C's specification demands that an invalid one is ignored."""
    answers: Any = None
    """The kinds of questions that the caller answers, for clients with the feature ``questions``. Loosely typed;
    unknown kinds are ignored.
    """
    meta: Any = msgspec.field(name="_meta", default=None)
    """For the MCP server whose tool is called. Loosely typed; anything but an object is ignored."""


class ToolCallAlias(CallTool, tag="tool_call", frozen=True):
    """``call_tool`` in the spelling of older clients."""


class Cancel(_Frame, tag="cancel", frozen=True):
    """Cancel a running call."""

    request_id: RequestId


class CallStatusQuery(_Frame, tag="call_status", frozen=True):
    """Query the states of calls by their request ids."""

    request_ids: _RequestIds


class Acknowledge(_Frame, tag="acknowledge", frozen=True):
    """The client has these answers, so the daemon may delete them. The daemon does not answer this frame."""

    request_ids: _RequestIds


class ForgetAlias(Acknowledge, tag="forget", frozen=True):
    """``acknowledge`` in the spelling of older clients."""


class AnswerQuestion(_Frame, tag="answer_question", frozen=True):
    """The answer to a question of a running call: a result or an error in MCP's form."""

    request_id: RequestId
    question_id: str
    result: Any = None
    error: Any = None


class ListTools(_Frame, tag="list_tools", frozen=True):
    """List the tools of the session's toolset. ``id`` is an older spelling of ``request_id``, here and below."""

    request_id: RequestId | None = None
    id: RequestId | None = None


class Ping(_Frame, tag="ping", frozen=True):
    """Check that the daemon's event loop responds; independent of WebSocket pings."""

    request_id: RequestId | None = None
    id: RequestId | None = None


class Health(_Frame, tag="health", frozen=True):
    """Query the daemon's health."""

    request_id: RequestId | None = None
    id: RequestId | None = None


ClientFrame = (
    Hello
    | CallTool
    | ToolCallAlias
    | Cancel
    | CallStatusQuery
    | Acknowledge
    | ForgetAlias
    | AnswerQuestion
    | ListTools
    | Ping
    | Health
)

# --- from the server -------------------------------------------------------------------------------------------------


class ServerInfo(msgspec.Struct, frozen=True):
    """``hello_ack.server``; ``epoch`` changes at each start of the daemon."""

    name: str
    version: str
    epoch: str


class FrameLimits(msgspec.Struct, frozen=True):
    """``hello_ack.limits``; the names give the units."""

    max_frame_bytes: int
    max_inflight: int
    ping_interval_s: float
    default_timeout_s: float
    max_timeout_s: float
    progress_window_s: float
    result_ttl_s: float


class HelloAck(_Frame, tag="hello_ack", omit_defaults=True, frozen=True):
    """The answer to ``hello``: on success every field except ``error``, on failure only ``ok`` and ``error``."""

    ok: bool
    session_id: str | None = None
    session_id_generated: bool | None = None
    """True if the server generated the label because the client sent no valid one; ``notice`` gives the reason."""
    notice: str | None = None
    protocol: int | None = None
    server: ServerInfo | None = None
    features: tuple[str, ...] | None = None
    toolset: str | None = None
    tools_rev: str | None = None
    """``rev`` of the tool listing, as in ``list_tools_res`` and ``tools_changed``."""
    instructions: str | None = None
    resumed: bool | None = None
    resume_key: str | None = None
    durability: Literal["disk", "memory"] | None = None
    limits: FrameLimits | None = None
    error: ToolError | None = None


class CallToolAck(_Frame, tag="call_tool_ack", omit_defaults=True, frozen=True):
    """The call is accepted and gets exactly one ``call_tool_res`` within ``timeout_ms``."""

    request_id: RequestId
    accepted: bool
    timeout_ms: float
    notice: str | None = None
    """Set if the requested timeout was lowered to the maximum."""
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class ProgressFrame(_Frame, tag="progress", omit_defaults=True, frozen=True):
    """Progress of a running call; ``seq`` counts the call's progress frames from 1."""

    request_id: RequestId
    seq: int
    message: str
    done: float | None = None
    total: float | None = None
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class StreamChunk(_Frame, tag="stream_chunk", frozen=True):
    """A piece of the answer's text; ``seq`` counts the call's chunks from 1."""

    request_id: RequestId
    seq: int
    text: str
    offset: int | None = None
    """The number of characters before this piece, including unsent ones; None from older daemons."""
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class CallToolRes(_Frame, tag="call_tool_res", frozen=True):
    """The one terminal answer of a call: outputs or an error."""

    request_id: RequestId
    outputs: Sequence[Any]
    """MCP content blocks, a text block first: ``ContentBlock`` when sent, dicts when received."""
    error: ToolError | None
    metadata: Metadata
    structured: Json | msgspec.UnsetType = msgspec.UNSET
    id: RequestId | msgspec.UnsetType = msgspec.UNSET
    ok: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether ``error`` is null; absent from older daemons."""
    result: Sequence[Any] | msgspec.UnsetType = msgspec.UNSET
    """For callers that sent ``id``: ``outputs``, or one text block with the error."""
    meta: dict[str, Json] | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")
    """The ``_meta`` of an MCP server's result."""


class QuestionFrame(_Frame, tag="question", omit_defaults=True, frozen=True):
    """A running call asks its client, which answers with ``answer_question``. The same question may arrive again."""

    request_id: RequestId
    question_id: str
    kind: QuestionKind
    method: str
    """MCP's method; ``params`` has its parameters."""
    params: dict[str, Json]
    timeout_ms: float
    """The remaining time of the question."""
    source: str = ""
    """The source that asks; absent if a tool of the daemon asks."""


class QuestionClosed(_Frame, tag="question_closed", frozen=True):
    """A question no longer needs an answer: it was withdrawn, or no answer came in time."""

    request_id: RequestId
    question_id: str


class CancelRes(_Frame, tag="cancel_res", frozen=True):
    """The call to cancel was not running; ``status`` is its state."""

    request_id: RequestId
    status: CallStatus


class CallStatusRes(_Frame, tag="call_status_res", frozen=True):
    """The state of each call, by request id; numeric ids are written as strings, as JSON requires."""

    calls: dict[str, CallStatus]


class ListToolsRes(_Frame, tag="list_tools_res", omit_defaults=True, frozen=True):
    """The tools of the session's toolset in a stable order; ``rev`` changes when they change."""

    tools: tuple[ToolInfo, ...]
    rev: str
    request_id: RequestId | None = None
    id: RequestId | None = None


class Pong(_Frame, tag="pong", omit_defaults=True, frozen=True):
    """The answer to ``ping``."""

    request_id: RequestId | None = None
    id: RequestId | None = None


class HealthRes(_Frame, tag="health_res", omit_defaults=True, frozen=True):
    """The answer to ``health``: the same object as at ``/readyz``."""

    health: dict[str, Any]
    request_id: RequestId | None = None
    id: RequestId | None = None


class ErrorFrame(_Frame, tag="error", omit_defaults=True, frozen=True):
    """The daemon rejected a frame that is not a call; ``request_id`` is set if the frame had a readable one."""

    error: ToolError
    request_id: RequestId | None = None


class GoingAway(_Frame, tag="going_away", frozen=True):
    """The daemon is shutting down; running calls are answered within ``deadline_ms``."""

    deadline_ms: float


class ToolsChanged(_Frame, tag="tools_changed", frozen=True):
    """The tools of the session's toolset have changed."""

    rev: str


class Notification(_Frame, tag="notification", frozen=True):
    """A notification of MCP about resources, prompts or log messages, for clients with the feature ``resources``."""

    method: str
    params: dict[str, Any]


ServerFrame = (
    HelloAck
    | CallToolAck
    | ProgressFrame
    | StreamChunk
    | CallToolRes
    | QuestionFrame
    | QuestionClosed
    | CancelRes
    | CallStatusRes
    | ListToolsRes
    | Pong
    | HealthRes
    | ErrorFrame
    | GoingAway
    | ToolsChanged
    | Notification
)

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
"""A frame → its JSON bytes (UTF-8). Raises ``TypeError`` or ``ValueError`` for values that JSON cannot represent."""

decode_server_frame = msgspec.json.Decoder(ServerFrame).decode
"""JSON text → a server frame. Raises ``msgspec.DecodeError``; for an unknown op, its subclass ``ValidationError``."""
