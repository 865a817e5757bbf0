"""What a call and its result are, whichever transport they travel by."""

from typing import Any, Final, Literal

import msgspec

from .error_codes import ToolError

# Structs of many short-lived calls, and of results that are kept, are hidden from the search for cyclic garbage
# (gc=False): what they hold came from JSON or goes there, and cannot refer back to them.

RequestId = str | int | float
"""A request id as the client sent it: a string, or a number that is echoed as it came."""

Json = Any
"""Any JSON value: None, bool, int, float, str, list or dict of these."""

MAX_FRAME_BYTES: Final = 20 * 1024 * 1024
"""Frames go up to 20 MiB both ways (docs/protocol.md)."""
DEFAULT_TIMEOUT_S: Final = 30.0
"""A call's deadline unless the tool or the call says otherwise (docs/protocol.md, Calls)."""
MAX_TIMEOUT_S: Final = 1800.0
"""The longest deadline that a call may ask for."""


class TextContent(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """An MCP content block of plain text."""

    text: str


class ImageContent(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="image", rename="camel"):
    """An MCP content block of a picture."""

    data: str
    """As base64."""
    mime_type: str


class AudioContent(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="audio", rename="camel"):
    """An MCP content block of sound."""

    data: str
    """As base64."""
    mime_type: str


class EmbeddedResource(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="resource"):
    """An MCP content block of a resource's contents: ``uri``, ``mimeType``, and ``text`` or ``blob``."""

    resource: dict[str, Json]


class ResourceLink(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="resource_link", rename="camel"
):
    """An MCP content block that says where a resource is."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """In bytes."""


ContentBlock = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one or more completions, as the vendor counted them; where it did not, by our own estimate."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    """Part of ``output_tokens``."""
    cached_tokens: int = 0
    """Part of ``input_tokens``, billed at the lower price."""
    estimated: bool = False
    """Whether some of it is our own estimate: the vendor counted nothing, or the completion was cut off."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
        )


class Cost(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the tokens cost by the catalog's list price."""

    amount: float
    currency: str
    """ISO 4217: ``USD`` or ``CNY``."""
    estimated: bool = False
    """Whether the tokens are, as far as it was made of them."""


class ModelUsage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the completions of one model came to, within one call."""

    provider: str
    model: str
    completions: int
    usage: Usage
    cost: Cost | None = None
    """None where the model has no known price."""

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Both together; they are of the same model, and so of the same currency."""
        return ModelUsage(
            self.provider,
            self.model,
            self.completions + other.completions,
            self.usage + other.usage,
            _sum(self.cost, other.cost),
        )


def _sum(one: Cost | None, other: Cost | None) -> Cost | None:
    if one is None or other is None:
        return one or other
    return Cost(round(one.amount + other.amount, 9), one.currency, one.estimated or other.estimated)


class Timings(msgspec.Struct, frozen=True, gc=False):
    """Where a call's time went, in milliseconds: waiting for permits, in the tool, and of that in providers."""

    queue_ms: float = 0.0
    tool_ms: float = 0.0
    provider_ms: float = 0.0


class Metadata(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """``metadata`` of a ``call_tool_res``; the optional fields stand where they are known."""

    latency_ms: float
    timings: Timings
    provider: str | None = None
    model: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    simulated: bool | None = None
    """True where a provider's answer came from the simulator."""
    chosen_because: str | None = None
    """Why ``model`` was asked, where the choice was left to the daemon."""
    provider_calls: int = 0
    """Requests that vendors were sent for it: completions, uploads, searches; those that failed too."""
    usage_by_model: tuple[ModelUsage, ...] = ()
    """What each model took, where it was more than one: ``usage`` and ``cost`` are their sums."""
    shaping: dict[str, Json] | None = None
    """What was done to a result before it was answered (docs/shaping.md, the report)."""
    spilled: bool | None = None
    """True where the answer was too large to be sent: it is kept as a file, and ``structured`` has its handle."""
    replayed: bool | None = None


class Annotations(msgspec.Struct, frozen=True, rename="camel"):
    """MCP's tool annotations: what a caller may assume without knowing the tool."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class ToolInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A tool as ``list_tools`` shows it, in MCP's words."""

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: Annotations
    output_schema: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """Of ``structured``, where it is known."""


class ClientInfo(msgspec.Struct, frozen=True):
    """``hello.client``: who connected, for logs and audit, and where its relative paths start."""

    name: str = ""
    version: str = ""
    workspace: str | None = None


class Principal(msgspec.Struct, frozen=True):
    """Who it is; results, budgets and files belong to a principal alone."""

    name: str


LOCAL: Final = Principal("local")
"""The principal of the daemon's own token, and of everybody where auth is off."""


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """What a transport hands to dispatch: one call, as the caller meant it."""

    request_id: RequestId
    name: str
    """After aliases (see ``frames.canonical_tool_name``)."""
    arguments: dict[str, Any]
    timeout_ms: float | None = None
    """The caller's wish; None takes the tool's own."""
    frame_bytes: int = 0
    """Size of the frame that it came in; 0 where there was none."""
    on_disconnect: Literal["keep", "cancel"] | None = None
    """What becomes of it when its connection ends; None: what only reads ends with it and what may write goes on, and
    in a session that can be resumed all goes on."""
    echo_id: bool = False
    """The client spelt the id ``id``: its answers carry it under both names."""


class ToolResult(msgspec.Struct, frozen=True, gc=False):
    """What dispatch hands back: outputs, or one error; never both, never neither."""

    metadata: Metadata
    outputs: tuple[ContentBlock, ...] = ()
    """A text block first."""
    structured: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def outcome(self) -> str:
        """``ok``, or the error's code."""
        return self.error.code if self.error else "ok"

    @property
    def text(self) -> str:
        """Its text blocks, one below the other."""
        return "\n".join(block.text for block in self.outputs if isinstance(block, TextContent))

    @property
    def value(self) -> Json:
        """What a step, a program or a file has of it: the data where there is any, else the text; where there are
        pictures, sounds or resources, all blocks under ``content``.
        """
        if self.structured is not msgspec.UNSET:
            return self.structured
        if all(isinstance(block, TextContent) for block in self.outputs):
            return self.text
        return {"content": [msgspec.to_builtins(block) for block in self.outputs]}


encode_result = msgspec.json.Encoder().encode
"""A ``ToolResult`` → the bytes that are kept of it."""
decode_result = msgspec.json.Decoder(ToolResult).decode
"""The bytes of ``encode_result`` → the result. Raises ``msgspec.DecodeError``."""


class Progress(msgspec.Struct, frozen=True, gc=False):
    """One report of a running call; ``done`` of ``total`` in whatever unit the message names."""

    message: str
    done: float | None = None
    total: float | None = None


CallStatus = Literal["running", "done", "interrupted", "expired", "unknown"]
