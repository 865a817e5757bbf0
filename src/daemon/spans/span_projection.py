"""Creates spans of ended calls and completions, like ``audit_projection`` creates audit rows. Pure."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from ...protocol.tool_call import Cost, Usage
from ...protocol.trace_context import TraceParent, span_id_of, trace_id_of
from ...tools import AGENT_SOURCE, OWN_SOURCE
from . import gen_ai_names as gen_ai
from . import span_content
from .gen_ai_names import Operation
from .span_content import CallContent, CompletionContent

MAX_NAME_CHARS: Final = 128
"""The limit of names that callers choose, as in the audit."""

AttributeValue = str | bool | int | float | Sequence[str]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One span, before it is encoded."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    remote_parent: bool = False
    """Whether the parent is a span of the caller."""
    name: str
    kind: Literal["internal", "client"]
    start_s: float
    """Unix time in seconds."""
    end_s: float
    attributes: dict[str, AttributeValue]
    error: str | None = None
    """If it failed: the description of its status, which may be empty."""


class EndedCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The data of an ended call that a span needs."""

    call_id: str
    parent_id: str | None
    """The call id of its parent."""
    remote: TraceParent | None
    """The span of the caller of its root."""
    orchestration: bool
    tool: str
    source: str
    started_at: float
    latency_ms: float
    queue_ms: float
    outcome: str
    message: str | None
    """The part of its error's message that may be sent."""
    transport: str
    principal: str
    session: str
    client: str
    simulated: bool
    conversation: str | None = None
    content: CallContent | None = None


class ResponseFacts(msgspec.Struct, frozen=True, gc=False):
    """The data of a model's answer that a span shows, except for its texts."""

    model: str
    finish_reason: str | None
    usage: Usage | None
    cost: Cost | None
    simulated: bool
    dimensions: int | None = None
    """The length of the vectors; only for embeddings."""


class EndedCompletion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The data of one request to a model that a span needs."""

    span: TraceParent
    parent_id: bytes
    """The span of its call."""
    provider: str
    model: str
    started_at: float
    ended_at: float
    response: ResponseFacts | None
    error: str | None
    """The code of the failure."""
    message: str | None
    """The part of its message that may be sent."""
    operation: Operation = "chat"
    temperature: float | None = None
    max_tokens: int | None = None
    encoding: str | None = None
    """The encoding of the vectors; only for embeddings."""
    content: CompletionContent | None = None


Ended = EndedCall | EndedCompletion


def operation_of(source: str) -> Operation:
    """The conventions' name for a call of a tool of this source."""
    return "invoke_agent" if source == AGENT_SOURCE else "execute_tool"


def trace_of(root_call_id: str, remote: TraceParent | None) -> bytes:
    """The trace of a call and all calls within it: the caller's trace, or a new one."""
    return trace_id_of(root_call_id) if remote is None else remote.trace_id


def root_id_of(call_id: str) -> str:
    """The id of the root call, which is a client's call or a detached call; a child's id begins with it."""
    return call_id.partition("/")[0]


def span_of_call(call: EndedCall) -> Span:
    """The span of an ended call."""
    name, operation = call.tool[:MAX_NAME_CHARS], operation_of(call.source)
    attributes: dict[str, AttributeValue] = {
        gen_ai.OPERATION: operation,
        gen_ai.TOOL_CALL_ID: call.call_id,
        "user.id": call.principal,
        "toold.transport": call.transport,
        "toold.session": call.session,
        "toold.client": call.client[:MAX_NAME_CHARS],
        "toold.queue_ms": call.queue_ms,
    }
    if operation == "invoke_agent":
        attributes[gen_ai.AGENT_NAME] = name
    elif call.source == OWN_SOURCE:
        attributes |= {gen_ai.TOOL_NAME: name, gen_ai.TOOL_TYPE: gen_ai.FUNCTION_TOOL}
    else:
        attributes |= {gen_ai.TOOL_NAME: name, gen_ai.TOOL_TYPE: gen_ai.EXTENSION_TOOL, "toold.source": call.source}
    if call.simulated:
        attributes["toold.simulated"] = True
    if call.conversation is not None:
        attributes[gen_ai.CONVERSATION_ID] = call.conversation[:MAX_NAME_CHARS]
    if call.content is not None:
        attributes[gen_ai.TOOL_ARGUMENTS] = span_content.json_text(call.content.arguments)
        attributes[gen_ai.TOOL_RESULT] = span_content.json_text(call.content.result)
    remote = call.remote if call.parent_id is None else None
    parent = None if call.parent_id is None else span_id_of(call.parent_id, orchestration=True)
    return Span(
        trace_id=trace_of(root_id_of(call.call_id), call.remote),
        span_id=span_id_of(call.call_id, orchestration=call.orchestration),
        parent_id=parent if remote is None else remote.span_id,
        remote_parent=remote is not None,
        name=f"{operation} {name}",
        kind="internal",
        start_s=call.started_at,
        end_s=call.started_at + call.latency_ms / 1000,
        attributes=attributes if call.outcome == "ok" else {**attributes, "error.type": call.outcome},
        error=None if call.outcome == "ok" else _description(call.message),
    )


def span_of_completion(ended: EndedCompletion) -> Span:
    """The span of one request to a model."""
    attributes: dict[str, AttributeValue] = {
        gen_ai.OPERATION: ended.operation,
        gen_ai.PROVIDER_NAME: gen_ai.provider_name(ended.provider),
        gen_ai.REQUEST_MODEL: ended.model,
    }
    if ended.temperature is not None:
        attributes[gen_ai.REQUEST_TEMPERATURE] = ended.temperature
    if ended.max_tokens is not None:
        attributes[gen_ai.REQUEST_MAX_TOKENS] = ended.max_tokens
    if ended.encoding is not None:
        attributes[gen_ai.REQUEST_ENCODINGS] = (ended.encoding,)
    if ended.response is not None:
        attributes |= _response(ended.response)
    if ended.content is not None:
        attributes |= _messages(ended.content)
    if ended.error is not None:
        attributes["error.type"] = ended.error
    return Span(
        trace_id=ended.span.trace_id,
        span_id=ended.span.span_id,
        parent_id=ended.parent_id,
        name=f"{ended.operation} {ended.model}",
        kind="client",
        start_s=ended.started_at,
        end_s=ended.ended_at,
        attributes=attributes,
        error=None if ended.error is None else _description(ended.message),
    )


def span_of(ended: Ended) -> Span:
    """The span of a call or request that has ended."""
    return span_of_call(ended) if isinstance(ended, EndedCall) else span_of_completion(ended)


def _description(message: str | None) -> str:
    return "" if message is None else span_content.error_text(message)


def _response(response: ResponseFacts) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {gen_ai.RESPONSE_MODEL: response.model[:MAX_NAME_CHARS]}
    if response.finish_reason is not None:
        attributes[gen_ai.FINISH_REASONS] = (response.finish_reason,)
    if response.dimensions is not None:
        attributes[gen_ai.DIMENSIONS] = response.dimensions
    usage, cost = response.usage, response.cost
    if usage is not None:
        attributes |= {gen_ai.INPUT_TOKENS: usage.input_tokens, gen_ai.OUTPUT_TOKENS: usage.output_tokens}
        if usage.cached_tokens:
            attributes[gen_ai.CACHED_TOKENS] = usage.cached_tokens
        if usage.reasoning_tokens:
            attributes[gen_ai.REASONING_TOKENS] = usage.reasoning_tokens
    if response.simulated:
        attributes["toold.simulated"] = True
    elif cost is not None:
        attributes |= {"toold.cost": cost.amount, "toold.cost.currency": cost.currency}
    return attributes


def _messages(content: CompletionContent) -> dict[str, AttributeValue]:
    request, completion = content.request, content.completion
    texts = {
        gen_ai.SYSTEM_INSTRUCTIONS: span_content.system_instructions(request),
        gen_ai.INPUT_MESSAGES: span_content.input_messages(request),
        gen_ai.TOOL_DEFINITIONS: span_content.tool_definitions(request),
        gen_ai.OUTPUT_MESSAGES: None if completion is None else span_content.output_messages(completion),
    }
    mask = content.mask
    return {name: text if mask is None else mask.text(text) for name, text in texts.items() if text is not None}
