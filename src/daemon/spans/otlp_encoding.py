"""Encodes spans as the body of an OTLP request, and decodes the collector's answer. Needs the extra ``otel``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from ...version import __version__
from .span_projection import AttributeValue, Span

_SCOPE: Final = InstrumentationScope(name="toold", version=__version__)
_KINDS: Final = {"internal": trace_pb2.Span.SPAN_KIND_INTERNAL, "client": trace_pb2.Span.SPAN_KIND_CLIENT}
_SAMPLED: Final = 1
_KNOWN: Final = trace_pb2.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
_REMOTE: Final = _KNOWN | trace_pb2.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
_MAX_REASON_CHARS: Final = 300


class PartialSuccess(NamedTuple):
    """The number of spans of an accepted request that the collector rejected, and the reason."""

    rejected: int
    message: str


def encode_spans(spans: Iterable[Span], resource: Mapping[str, AttributeValue]) -> bytes:
    """Returns an ``ExportTraceServiceRequest`` with these spans."""
    scope_spans = trace_pb2.ScopeSpans(scope=_SCOPE, spans=map(_span, spans))
    described = Resource(attributes=_attributes(resource))
    request = ExportTraceServiceRequest(
        resource_spans=[trace_pb2.ResourceSpans(resource=described, scope_spans=[scope_spans])]
    )
    body: bytes = request.SerializeToString()
    return body


def decode_answer(body: bytes) -> PartialSuccess:
    """Decodes the answer to an accepted request. An answer of another type counts as complete success."""
    answer = ExportTraceServiceResponse()
    try:
        answer.ParseFromString(body)
    except Exception:  # noqa: BLE001 - protobuf's DecodeError has no types; the spans are accepted in any case
        return PartialSuccess(0, "")
    partial = answer.partial_success
    return PartialSuccess(partial.rejected_spans, " ".join(partial.error_message.split())[:_MAX_REASON_CHARS])


def _span(span: Span) -> trace_pb2.Span:
    encoded = trace_pb2.Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        flags=_SAMPLED | (_REMOTE if span.remote_parent else _KNOWN),
        name=_valid(span.name),
        kind=_KINDS[span.kind],
        start_time_unix_nano=round(span.start_s * 1e9),
        end_time_unix_nano=round(max(span.end_s, span.start_s) * 1e9),
        attributes=_attributes(span.attributes),
    )
    if span.parent_id is not None:
        encoded.parent_span_id = span.parent_id
    if span.error is not None:
        encoded.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        encoded.status.message = _valid(span.error)
    return encoded


def _attributes(values: Mapping[str, AttributeValue]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in values.items()]


def _value(value: AttributeValue) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=_valid(value))
        case Sequence():
            return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=_valid(item)) for item in value]))


def _valid(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, replaced by question marks."""
    return text if text.isascii() else text.encode(errors="replace").decode()
