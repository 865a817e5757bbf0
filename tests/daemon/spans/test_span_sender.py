"""The thread that sends spans, and a collector that accepts, refuses, is busy, or hangs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from structlog.testing import capture_logs
from tests.daemon.spans.collector import Answer, Collector, attributes, running_collector
from tests.daemon.spans.test_span_projection import CALL, CALLER, COMPLETION
from tests.waiting import until
from toold.daemon.spans import span_sender
from toold.daemon.spans.collector_client import CollectorClient, CollectorFailure
from toold.daemon.spans.span_queue import BATCH, SpanQueue
from toold.daemon.spans.span_sender import LONGEST_PAUSE_S, LONGEST_RETRY_AFTER_S, SpanSender, retry_pause_s


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture
def queue() -> SpanQueue:
    return SpanQueue(max_spans=2 * BATCH, max_chars=1000)


@pytest.fixture
async def start(
    collector: Collector, queue: SpanQueue, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., SpanSender]]:
    """A function that starts the sender, which waits for no batch and retries at once."""
    monkeypatch.setattr(span_sender, "DELAY_S", 0.01)
    monkeypatch.setattr(span_sender, "FIRST_PAUSE_S", 0.01)
    started: list[SpanSender] = []

    def starting(url: str = f"{collector.url}/v1/traces", **headers: str) -> SpanSender:
        sender = SpanSender(queue, CollectorClient(url, headers), {"service.name": "toold"})
        sender.start()
        started.append(sender)
        return sender

    yield starting
    for sender in started:
        with suppress(RuntimeError):
            await sender.close(0.0)


async def test_spans_are_sent_as_otlp(collector: Collector, queue: SpanQueue, start: Any) -> None:
    """What the collector decodes is what was projected, with the resource, the configured headers, and gzip."""
    start(Authorization="Bearer k")
    queue.add(replace(CALL, remote=CALLER, outcome="TIMEOUT", message="too late \ud800"))
    queue.add(COMPLETION)
    await until(lambda: len(collector.spans) == 2)
    call, completion = collector.spans
    assert attributes(collector.requests[0].resource_spans[0].resource) == {"service.name": "toold"}
    assert (call.trace_id, call.parent_span_id, call.flags) == (CALLER.trace_id, CALLER.span_id, 0x301)
    assert (call.name, call.kind, call.start_time_unix_nano) == ("execute_tool chat", 1, 1000 * 10**9)
    assert call.end_time_unix_nano - call.start_time_unix_nano == 250 * 10**6
    assert (call.status.code, call.status.message) == (2, "too late ?")
    assert attributes(call)["toold.queue_ms"] == 1.5
    assert (completion.kind, completion.status.code, completion.flags) == (3, 0, 0x101)
    assert attributes(completion)["gen_ai.response.finish_reasons"] == ["stop"]
    assert attributes(completion)["gen_ai.usage.input_tokens"] == 10
    headers = collector.headers[0]
    assert (headers["authorization"], headers["content-type"]) == ("Bearer k", "application/x-protobuf")
    assert collector.paths == ["/v1/traces"]


async def test_many_spans_are_sent_in_batches(collector: Collector, queue: SpanQueue, start: Any) -> None:
    """No request has more than a batch, and their order is kept."""
    for number in range(BATCH + 10):
        queue.add(replace(CALL, tool=f"t{number}"))
    sender = start()
    await until(lambda: sender.sent == BATCH + 10)
    assert [len(request.resource_spans[0].scope_spans[0].spans) for request in collector.requests] == [BATCH, 10]
    assert [span.name for span in collector.spans] == [f"execute_tool t{number}" for number in range(BATCH + 10)]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_busy_collector_gets_the_same_request_again(
    collector: Collector, queue: SpanQueue, start: Any, status: int
) -> None:
    """Nothing is lost, and the failure is reported once."""
    collector.answers += [Answer(status), Answer(status)]
    with capture_logs() as logs:
        sender = start()
        queue.add(CALL)
        await until(lambda: sender.sent == 1)
    assert len(collector.requests) == 3
    assert collector.requests[0] == collector.requests[2]
    assert (sender.refused, sender.problem) == (0, None)
    assert [entry["event"] for entry in logs] == ["spans cannot be sent; retrying", "spans are sent again"]


@pytest.mark.parametrize("status", [400, 401, 404, 408, 413, 500, 501, 301])
async def test_a_refused_request_is_not_repeated(
    collector: Collector, queue: SpanQueue, start: Any, status: int
) -> None:
    """Its spans are counted as refused, and later ones are sent."""
    collector.answers.append(Answer(status, headers=[("Location", "/elsewhere")]))
    sender = start()
    queue.add(CALL)
    await until(lambda: sender.refused == 1)
    assert sender.problem is not None
    assert sender.problem.startswith(f"HTTP {status}")
    queue.add(CALL)
    await until(lambda: sender.sent == 1)
    assert (len(collector.requests), sender.problem) == (2, None)


async def test_a_partial_success_is_reported_once(collector: Collector, queue: SpanQueue, start: Any) -> None:
    """Rejected spans are counted and not sent again."""
    partial = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=1, error_message="too\nold")
    )
    collector.answers += [Answer(200, partial.SerializeToString())] * 2
    with capture_logs() as logs:
        sender = start()
        queue.add(CALL)
        await until(lambda: sender.refused == 1)
        queue.add(CALL)
        await until(lambda: sender.refused == 2)
    assert (len(collector.requests), sender.sent) == (2, 0)
    assert [(entry["rejected"], entry["reason"]) for entry in logs] == [(1, "too old")]


async def test_the_last_spans_are_sent_at_the_end(collector: Collector, queue: SpanQueue, start: Any) -> None:
    """Closing does not wait for a batch."""
    sender = start()
    queue.add(CALL)
    await sender.close(60.0)
    assert (sender.sent, len(collector.spans), sender.waiting) == (1, 1, 0)


async def test_a_hanging_collector_delays_the_end_by_a_limited_time(
    collector: Collector, queue: SpanQueue, start: Any
) -> None:
    """What it did not take is lost, and said to be."""
    collector.hold = threading.Event()
    sender = start()
    queue.add(CALL)
    await until(lambda: len(collector.requests) == 1)
    queue.add(CALL)
    with capture_logs() as logs:
        async with asyncio.timeout(60):
            await sender.close(0.1)
    assert sender.sent == 0
    assert [(entry["event"], entry["spans"]) for entry in logs] == [("spans were not sent before the shutdown", 2)]


async def test_an_absent_collector_is_tried_once_more_at_the_end(queue: SpanQueue, start: Any) -> None:
    """A pause between attempts ends with the daemon."""
    sender = start("http://127.0.0.1:1/v1/traces")
    queue.add(CALL)
    await until(lambda: sender.problem is not None)
    await sender.close(60.0)
    assert (sender.sent, sender.refused, sender.unsent) == (0, 0, 1)


def test_the_pause_grows_up_to_a_limit() -> None:
    """Half of it is random; a Retry-After precedes it, within bounds."""
    assert retry_pause_s(1, 0.0, 0.0) == 0.5
    assert retry_pause_s(1, 0.0, 0.5) == 0.75
    assert retry_pause_s(100, 0.0, 0.0) == LONGEST_PAUSE_S / 2
    assert retry_pause_s(1, 20.0, 0.0) == 20.0
    assert retry_pause_s(1, 1e9, 0.0) == LONGEST_RETRY_AFTER_S


async def test_a_retry_after_is_obeyed(collector: Collector) -> None:
    """Its seconds are read from a busy collector's answer."""
    collector.answers.append(Answer(503, headers=[("Retry-After", "7")]))
    client = CollectorClient(collector.url, {})
    failure = await client.export(b"")
    await client.close()
    assert failure == CollectorFailure("HTTP 503", retryable=True, retry_after_s=7.0)
