"""Every frame as a typed model. docs/protocol.md says what they mean; unknown fields are ignored.

Frames from the client are below ``ClientFrame``, frames from the server below ``ServerFrame``; ``op`` tells which.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from .error_codes import ToolError
from .tool_call import CallStatus, Json, Metadata, RequestId, ToolInfo

PROTOCOL_VERSION: Final = 1

CLOSE_NOT_JSON: Final = 4000
CLOSE_NOT_HELLO: Final = 4001
CLOSE_NO_HELLO: Final = 4002
CLOSE_UNAUTHORIZED: Final = 4003
CLOSE_SUPERSEDED: Final = 4004
CLOSE_LIMIT: Final = 1008
CLOSE_NO_PONG: Final = 1011
CLOSE_RESTART: Final = 1012

MAX_REQUEST_ID_CHARS: Final = 512
"""A longer request id is refused: it is kept in memory, logs and audit rows."""

_SUFFIX = re.compile(r"[_-]EXAI[_-]WS.*$", re.DOTALL)


def canonical_tool_name(name: str) -> str:
    """The tool's own name: older clients append ``_EXAI-WS…`` (with ``_`` or ``-`` in either place)."""
    return _SUFFIX.sub("", name) if "EXAI" in name else name


class _Frame(msgspec.Struct, tag_field="op", frozen=True, gc=False):
    """Base of all frames."""


# --- from the client -------------------------------------------------------------------------------------------------


class Hello(_Frame, tag="hello", frozen=True):
    """The first frame. Fields stay loosely typed here: ``handshake`` judges them one by one."""

    session_id: Any = None
    token: Any = None
    features: Any = None
    resume: Any = None
    toolset: Any = None
    client: Any = None


class CallTool(_Frame, tag="call_tool", frozen=True):
    """One tool call; ``tool`` and ``id`` are older spellings of ``name`` and ``request_id``."""

    request_id: RequestId | None = None
    name: str | None = None
    arguments: dict[str, Any] | None = None
    timeout_ms: float | None = None
    on_disconnect: Literal["keep", "cancel"] | None = None
    id: RequestId | None = None
    tool: dict[str, Any] | str | None = None


class ToolCallAlias(CallTool, tag="tool_call", frozen=True):
    """``call_tool`` as older clients spell it."""


class Cancel(_Frame, tag="cancel", frozen=True):
    """End a running call early."""

    request_id: RequestId


class CallStatusQuery(_Frame, tag="call_status", frozen=True):
    """Ask what is known of some request ids."""

    request_ids: list[RequestId]


class Acknowledge(_Frame, tag="acknowledge", frozen=True):
    """The client has these answers, so the daemon may delete them. No frame answers it."""

    request_ids: list[RequestId]


class ForgetAlias(Acknowledge, tag="forget", frozen=True):
    """``acknowledge`` in the spelling of older clients."""


class ListTools(_Frame, tag="list_tools", frozen=True):
    """Ask for the tools of this connection's toolset."""

    request_id: RequestId | None = None


class Ping(_Frame, tag="ping", frozen=True):
    """Ask whether the daemon's loop is alive; beside WebSocket's own pings."""

    request_id: RequestId | None = None


class Health(_Frame, tag="health", frozen=True):
    """Ask how the daemon is."""

    request_id: RequestId | None = None


ClientFrame = (
    Hello | CallTool | ToolCallAlias | Cancel | CallStatusQuery | Acknowledge | ForgetAlias | ListTools | Ping | Health
)

# --- from the server -------------------------------------------------------------------------------------------------


class ServerInfo(msgspec.Struct, frozen=True):
    """``hello_ack.server``; ``epoch`` changes with each start of the daemon."""

    name: str
    version: str
    epoch: str


class FrameLimits(msgspec.Struct, frozen=True):
    """``hello_ack.limits``: bytes, counts and seconds as the names say."""

    max_frame_bytes: int
    max_inflight: int
    ping_interval_s: float
    default_timeout_s: float
    max_timeout_s: float
    progress_window_s: float
    result_ttl_s: float


class HelloAck(_Frame, tag="hello_ack", omit_defaults=True, frozen=True):
    """The answer to hello; on success all fields stand but ``error``, on failure ``ok`` and ``error``."""

    ok: bool
    session_id: str | None = None
    session_id_generated: bool | None = None
    """True where the label was absent or malformed, so that the server made one; ``notice`` says why."""
    notice: str | None = None
    protocol: int | None = None
    server: ServerInfo | None = None
    features: tuple[str, ...] | None = None
    toolset: str | None = None
    tools_rev: str | None = None
    """``rev`` of the listing, as ``list_tools_res`` and ``tools_changed`` have it."""
    instructions: str | None = None
    resumed: bool | None = None
    resume_key: str | None = None
    durability: Literal["disk", "memory"] | None = None
    limits: FrameLimits | None = None
    error: ToolError | None = None


class CallToolAck(_Frame, tag="call_tool_ack", omit_defaults=True, frozen=True):
    """The call is accepted and gets exactly one ``call_tool_res``; ``timeout_ms`` is its whole time."""

    request_id: RequestId
    accepted: bool
    timeout_ms: float
    notice: str | None = None
    """Stands where the wished time-out was lowered to the maximum."""
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class ProgressFrame(_Frame, tag="progress", omit_defaults=True, frozen=True):
    """A running call lives; ``seq`` counts this call's progress frames from 1."""

    request_id: RequestId
    seq: int
    message: str
    done: float | None = None
    total: float | None = None
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class StreamChunk(_Frame, tag="stream_chunk", frozen=True):
    """A piece of the answer's text; ``seq`` counts this call's chunks from 1."""

    request_id: RequestId
    seq: int
    text: str
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class CallToolRes(_Frame, tag="call_tool_res", frozen=True):
    """The one terminal answer of a call: outputs, or an error."""

    request_id: RequestId
    outputs: Sequence[Any]
    """MCP content blocks, a text block first: ``ContentBlock`` where it is sent, dicts where it is received."""
    error: ToolError | None
    metadata: Metadata
    structured: Json | msgspec.UnsetType = msgspec.UNSET
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class CancelRes(_Frame, tag="cancel_res", frozen=True):
    """The call to be cancelled was not running; ``status`` says what is known of it."""

    request_id: RequestId
    status: CallStatus


class CallStatusRes(_Frame, tag="call_status_res", frozen=True):
    """What is known of each id; numbers stand as JSON's names must, as strings."""

    calls: dict[str, CallStatus]


class ListToolsRes(_Frame, tag="list_tools_res", omit_defaults=True, frozen=True):
    """The tools of the session's toolset, in a stable order; ``rev`` changes when they do."""

    tools: tuple[ToolInfo, ...]
    rev: str
    request_id: RequestId | None = None


class Pong(_Frame, tag="pong", omit_defaults=True, frozen=True):
    """The answer to ping."""

    request_id: RequestId | None = None


class HealthRes(_Frame, tag="health_res", omit_defaults=True, frozen=True):
    """The answer to health; ``health`` is the same object that ``/readyz`` shows."""

    health: dict[str, Any]
    request_id: RequestId | None = None


class ErrorFrame(_Frame, tag="error", omit_defaults=True, frozen=True):
    """A frame that is not a call was refused; ``request_id`` stands where one could be read."""

    error: ToolError
    request_id: RequestId | None = None


class GoingAway(_Frame, tag="going_away", frozen=True):
    """The daemon stops; calls that run are answered within ``deadline_ms``."""

    deadline_ms: float


class ToolsChanged(_Frame, tag="tools_changed", frozen=True):
    """The listing of the session's toolset is another one now."""

    rev: str


ServerFrame = (
    HelloAck
    | CallToolAck
    | ProgressFrame
    | StreamChunk
    | CallToolRes
    | CancelRes
    | CallStatusRes
    | ListToolsRes
    | Pong
    | HealthRes
    | ErrorFrame
    | GoingAway
    | ToolsChanged
)

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
"""A frame → its JSON bytes (UTF-8). Raises ``TypeError`` or ``ValueError`` for what JSON cannot hold."""

decode_server_frame = msgspec.json.Decoder(ServerFrame).decode
"""JSON text → a server's frame. Raises ``msgspec.DecodeError``, for an unknown op its ``msgspec.ValidationError``."""
