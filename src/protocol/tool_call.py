"""Calls and results, independent of the transport."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from .error_codes import ToolError
from .json_pieces import LONG_BYTES, decode_in_pieces, finite

# Structs of short-lived calls and of retained results are excluded from cyclic garbage collection (gc=False): their
# content comes from JSON or becomes JSON, so it cannot refer back to them.

RequestId = str | int | float
"""A request id as the client sent it: a string, or a number that is echoed unchanged."""

Json = Any
"""Any JSON value: None, bool, int, float, str, list or dict of these."""

MAX_FRAME_BYTES: Final = 20 * 1024 * 1024
"""The maximum size of a frame in either direction: 20 MiB (docs/protocol.md)."""
DEFAULT_TIMEOUT_S: Final = 30.0
"""The timeout of a call if neither the tool nor the call sets one (docs/protocol.md, Calls)."""
MAX_TIMEOUT_S: Final = 1800.0
"""The longest timeout that a call may request."""


class TextContent(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="text"):
    """An MCP content block with plain text."""

    text: str
    annotations: dict[str, Json] | None = None
    """MCP's annotations of the block, unchanged. The other blocks also have them, and ``meta``."""
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


def continuation_line(continuation_id: str) -> str:
    """The last line of a conversational answer in prose."""
    return f"continuation_id: {continuation_id}"


class ImageContent(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="image", rename="camel"
):
    """An MCP content block with an image."""

    data: str
    """Base64."""
    mime_type: str
    annotations: dict[str, Json] | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class AudioContent(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="audio", rename="camel"
):
    """An MCP content block with audio."""

    data: str
    """Base64."""
    mime_type: str
    annotations: dict[str, Json] | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class EmbeddedResource(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="resource"):
    """An MCP content block with a resource's content: ``uri``, ``mimeType``, and ``text`` or ``blob``."""

    resource: dict[str, Json]
    annotations: dict[str, Json] | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class ResourceLink(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="resource_link", rename="camel"
):
    """An MCP content block that links to a resource."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """In bytes."""
    icons: list[dict[str, Json]] | None = None
    annotations: dict[str, Json] | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


ContentBlock = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


def plain_text(block: ContentBlock) -> str | None:
    """The text of a block that is only text; None for any other."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource):
        text = block.resource.get("text")
        return text if isinstance(text, str) else None
    return None


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one or more completions, as counted by the vendor, or estimated if it did not count them."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    """Part of ``output_tokens``."""
    cached_tokens: int = 0
    """The part of ``input_tokens`` that is billed at the lower price for cached input."""
    estimated: bool = False
    """Whether any of the counts is estimated: the vendor counted nothing, or the completion was interrupted."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
        )


class Cost(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The cost of the tokens: the cost that the vendor states, or else at the model catalog's list price."""

    amount: float
    currency: str
    """ISO 4217: ``USD`` or ``CNY``."""
    estimated: bool = False
    """Whether any of the priced token counts is estimated."""


class ModelUsage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The usage of one model within one call."""

    provider: str
    model: str
    completions: int
    usage: Usage
    cost: Cost | None = None
    """None if the model's price is unknown."""

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Returns the sum. Both usages are of the same model, so they have the same currency."""
        return ModelUsage(
            self.provider,
            self.model,
            self.completions + other.completions,
            self.usage + other.usage,
            _sum(self.cost, other.cost),
        )


def _sum(cost: Cost | None, other: Cost | None) -> Cost | None:
    if cost is None or other is None:
        return cost or other
    return Cost(round(cost.amount + other.amount, 9), cost.currency, cost.estimated or other.estimated)


class Timings(msgspec.Struct, frozen=True, gc=False):
    """A call's times, in milliseconds: waiting for permits, running the tool, and the part of that in providers."""

    queue_ms: float = 0.0
    tool_ms: float = 0.0
    provider_ms: float = 0.0


class PartsOutcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How the parts of a call ended, such as a pipeline's steps or a batch's items."""

    outcome: Literal["succeeded", "failed", "unknown"]
    """``unknown``: at least one part did not succeed, but may have had an effect."""
    reason: str = ""
    """Why not all succeeded, in one sentence."""


class ApiResponse(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The parts of a REST API's response other than its content."""

    status: int
    headers: dict[str, str] = {}
    """The headers for paging, locations and rate limits, by lower-case name."""
    next_page: str | None = None
    """The tool's argument ``next_page`` for the next page."""


class Metadata(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """``metadata`` of a ``call_tool_res``; docs/protocol.md says when the optional fields are present."""

    latency_ms: float
    timings: Timings
    provider: str | None = None
    model: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    simulated: bool | None = None
    """True if the simulator answered."""
    model_choice_reason: str | None = None
    """Why the daemon chose ``model``; None if the caller chose it."""
    provider_calls: int = 0
    """Requests sent to vendors: completions, uploads, searches; failed ones included."""
    usage_by_model: tuple[ModelUsage, ...] = ()
    """The usage per model if the call used several; ``usage`` and ``cost`` are the sums."""
    argument_notices: tuple[str, ...] = ()
    """Changes to arguments in the form of an earlier server, one sentence each."""
    shaping: dict[str, Json] | None = None
    """How the result was shaped (docs/shaping.md, the report)."""
    parts: PartsOutcome | None = None
    """How the call's parts ended, if its answer reports on parts. Outer calls read this (docs/composition.md)."""
    response: ApiResponse | None = None
    """The rest of a REST API's response, if one answered."""
    spilled: bool | None = None
    """True if the answer was too large to send: it is in a file, and ``structured`` has its handle."""
    replayed: bool | None = None
    cache_age_s: float | None = None
    """The age in seconds of a result from the cache; None for other results."""


class Annotations(msgspec.Struct, frozen=True, rename="camel"):
    """MCP's tool annotations: what callers may assume about a tool."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class ToolInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A tool as ``list_tools`` returns it, with MCP's field names."""

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: Annotations
    output_schema: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The schema of ``structured``, if the tool declares one."""
    mcp: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """For a tool of an MCP server: the fields of the server's listing that are missing above or differ: ``title``,
    ``icons``, ``annotations``, ``_meta``. Fields that are null there are absent.
    """


class ClientInfo(msgspec.Struct, frozen=True):
    """``hello.client``: the client, for logs and audit, and the directory where its relative paths start."""

    name: str = ""
    version: str = ""
    workspace: str | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """The party that makes a call, identified by its name. Results, budgets and files belong to one principal."""

    name: str
    operator: bool = field(default=False, compare=False)
    """Whether the token may see what belongs to other principals (decision 51)."""


LOCAL: Final = Principal("local", operator=True)
"""The principal of the daemon's own token, and of all callers if auth is off."""


def stored_principal(name: str) -> Principal:
    """Returns the principal of a stored or detached call, without the operator right: its token may be revoked."""
    return LOCAL if name == LOCAL.name else Principal(name)


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """One call, as a transport submits it to dispatch."""

    request_id: RequestId
    name: str
    """The canonical name (``frames.canonical_tool_name``)."""
    arguments: dict[str, Any]
    timeout_ms: float | None = None
    """The timeout that the caller requested; None for the tool's own."""
    frame_bytes: int = 0
    """The size of the frame with the call; 0 if there was no frame."""
    on_disconnect: Literal["keep", "cancel"] | None = None
    """What happens to the call when the connection ends. None: in sessions that can be resumed, all calls continue; in
    other sessions, read-only calls are cancelled.
    """
    echo_id: bool = False
    """Whether the client sent the id as ``id``. The answers then have it under both names."""
    arguments_hash: bytes | None = None
    """The digest of long arguments, computed outside of the event loop."""
    traceparent: str | None = None
    """The caller's valid span (``trace_context``)."""
    answers: tuple[str, ...] = ()
    """The kinds of questions that the caller answers (``questions.client_question``)."""
    meta: dict[str, Any] | None = None
    """The part of the request's ``_meta`` that is passed on (``request_meta.passed_meta``)."""

    @property
    def identity(self) -> dict[str, Any] | bytes:
        """The arguments or their digest, which are equal for repeats of a call."""
        return self.arguments if self.arguments_hash is None else self.arguments_hash


class ToolResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a call: either outputs or one error."""

    metadata: Metadata
    outputs: tuple[ContentBlock, ...] = ()
    """The first block is text. For a tool of an MCP server, the blocks are the server's, in its order, even if the call
    failed there.
    """
    structured: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    meta: dict[str, Json] | msgspec.UnsetType = msgspec.UNSET
    """The ``_meta`` of an MCP server's result."""
    typed: bool | msgspec.UnsetType = msgspec.UNSET
    """True if the tool declares an output schema: MCP clients check structured content against it."""

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def outcome(self) -> str:
        """``ok`` or the error's code."""
        return self.error.code if self.error else "ok"

    @property
    def text(self) -> str:
        """The text blocks and the texts of resources, separated by line breaks."""
        return "\n".join(text for block in self.outputs if (text := plain_text(block)) is not None)

    @property
    def value(self) -> Json:
        """The value that pipelines, programs and files use: the structured data if there is any, otherwise the text. If
        there are images, audio, links or binary resources, all blocks under ``content``.
        """
        if self.structured is not msgspec.UNSET:
            return self.structured
        if all(plain_text(block) is not None for block in self.outputs):
            return self.text
        return {"content": [msgspec.to_builtins(block) for block in self.outputs]}


encode_result = msgspec.json.Encoder().encode
"""A ``ToolResult`` → the bytes that are stored."""
_decode_result: Final = msgspec.json.Decoder(ToolResult, float_hook=finite).decode


def decode_result(stored: bytes) -> ToolResult:
    """Decodes the bytes of ``encode_result``. Call it in a thread for more than ``LONG_BYTES``.

    Raises:
        msgspec.DecodeError: the bytes are not a result.
    """
    if len(stored) <= LONG_BYTES:
        return _decode_result(stored)
    result: ToolResult = msgspec.convert(decode_in_pieces(stored, max_values=None), ToolResult)
    return result


class Progress(msgspec.Struct, frozen=True, gc=False):
    """One progress report of a running call: ``done`` of ``total``, in the unit that the message names."""

    message: str
    done: float | None = None
    total: float | None = None


class ReasoningPiece(msgspec.Struct, frozen=True, gc=False):
    """A piece of a model's reasoning, as it streams."""

    text: str


class ToolCallPiece(msgspec.Struct, frozen=True, gc=False):
    """A piece of a tool call by a model, as it streams. The first piece of a call has its id and name."""

    index: int
    """The position of the call in the answer. Calls begin in this order."""
    id: str = ""
    name: str = ""
    arguments: str = ""
    """The next part of the JSON text."""
    extra_content: dict[str, Json] | None = None
    """Data that the vendor expects back with the call."""


AnswerPiece = ReasoningPiece | ToolCallPiece
"""A piece of an answer other than its text."""

FAILOVER_REASON: Final = "fallback after "
"""The beginning of ``Metadata.model_choice_reason`` if another model had failed before."""

CallStatus = Literal["running", "done", "interrupted", "expired", "unknown"]
