"""The traces of a running daemon, as a collector gets them."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from tests.daemon.spans.collector import Collector, attributes
from tests.waiting import until
from toold.daemon.config.setting_sources import SettingsError
from toold.protocol.error_codes import CallError
from toold.protocol.trace_context import TraceParent, parse_traceparent
from toold.testing import daemon_under_test
from toold.tools import Arguments, LookupContext, Tool, tool

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALLER = TraceParent(bytes.fromhex("0af7651916cd43dd8448eb211c80319c"), bytes.fromhex("b7ad6b7169203331"), True)
PIPELINE = [
    {"id": "a", "tool_name": "echo", "args": {"value": 1}},
    {"id": "b", "tool_name": "chat", "args": {"prompt": "Hello {{a}}"}},
]


def by_name(collector: Collector) -> dict[str, Any]:
    """The latest span of each name."""
    return {span.name: span for span in collector.spans}


async def test_a_call_with_its_children_and_completions_is_one_trace(serve: Any, collector: Collector) -> None:
    """The span of the caller is the root's parent; without content, no span has any."""
    daemon, client = await serve()
    await client.call("execute_pipeline", {"steps": PIPELINE}, traceparent=TRACEPARENT)
    await until(lambda: daemon.traces.counts()["sent"] == 4)
    assert daemon.traces.waiting == 0
    spans = by_name(collector)
    root, chat = spans["execute_tool execute_pipeline"], spans["execute_tool chat"]
    assert {span.trace_id for span in collector.spans} == {CALLER.trace_id}
    assert root.parent_span_id == CALLER.span_id
    assert chat.parent_span_id == spans["execute_tool echo"].parent_span_id == root.span_id
    completion = next(span for span in collector.spans if span.name.startswith("chat "))
    assert completion.parent_span_id == chat.span_id
    assert attributes(completion)["gen_ai.usage.input_tokens"] > 0
    assert attributes(completion)["toold.simulated"] is True
    assert attributes(chat)["gen_ai.conversation.id"]
    assert "Hello" not in str(collector.requests)
    metrics = daemon.metrics.render().decode()
    assert 'toold_spans_total{outcome="sent"} 4.0' in metrics
    assert "toold_spans_waiting 0.0" in metrics


async def test_with_content_spans_have_arguments_and_messages(serve: Any, collector: Collector) -> None:
    """Redacted, as in the audit."""
    _, client = await serve(TOOLD_OTEL__CONTENT="full", TOOLD_OTEL__PROJECT="agents", OTEL_SERVICE_NAME="mine")
    await client.call("chat", {"prompt": "My password=hunter-2-hunter is secret."})
    await until(lambda: len(collector.spans) == 2)
    completion, call = collector.spans
    assert "My password=[redacted] is secret." in attributes(call)["gen_ai.tool.call.arguments"]
    assert "password=[redacted]" in attributes(completion)["gen_ai.input.messages"]
    assert "Simulated answer" in attributes(completion)["gen_ai.output.messages"]
    resource = attributes(collector.requests[0].resource_spans[0].resource)
    assert (resource["service.name"], resource["openinference.project.name"]) == ("mine", "agents")


async def test_refused_calls_have_spans(serve: Any, collector: Collector) -> None:
    """Also a child that its parent's caller may not make; the error's code is its type."""
    _, client = await serve()
    with pytest.raises(CallError):
        await client.call("no_such_tool", traceparent=TRACEPARENT)
    steps = [{"id": "a", "tool_name": "echo", "args": {"value": 1, "bogus": 2}}]
    with pytest.raises(CallError):
        await client.call("execute_pipeline", {"steps": steps, "options": {"validate": False}})
    await until(lambda: len(collector.spans) >= 2)
    refused = by_name(collector)["execute_tool no_such_tool"]
    assert (refused.trace_id, refused.parent_span_id) == (CALLER.trace_id, CALLER.span_id)
    assert (refused.status.code, attributes(refused)["error.type"]) == (2, "TOOL_NOT_FOUND")


async def test_an_invalid_traceparent_is_ignored(serve: Any, collector: Collector) -> None:
    """The call runs, in a new trace."""
    _, client = await serve()
    for value in ("nonsense", TRACEPARENT.upper(), 7):
        assert (await client.call("echo", {"value": 1}, traceparent=value)).structured == 1
    await until(lambda: len(collector.spans) == 3)
    assert {(span.parent_span_id, span.trace_id[:8] == span.span_id) for span in collector.spans} == {(b"", True)}


async def test_a_trace_that_the_caller_does_not_record_is_not_sent(serve: Any, collector: Collector) -> None:
    """Nor are its children and completions; other traces are."""
    daemon, client = await serve()
    await client.call("execute_pipeline", {"steps": PIPELINE}, traceparent=TRACEPARENT[:-2] + "00")
    await client.call("echo", {"value": 1})
    await until(lambda: daemon.traces.counts()["sent"])
    assert [span.name for span in collector.spans] == ["execute_tool echo"]


async def test_a_caller_over_mcp_names_its_span(serve: Any, collector: Collector) -> None:
    """In ``_meta``, or else in the HTTP header."""
    daemon, _ = await serve()
    other = "00-11111111111111111111111111111111-2222222222222222-01"
    headers = {"authorization": f"Bearer {(daemon.settings.state_dir / 'token').read_text().strip()}"}
    headers |= {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    async with httpx.AsyncClient(trust_env=False, timeout=60, verify=False) as http:
        for header, meta in ((TRACEPARENT, None), (None, TRACEPARENT), (other, TRACEPARENT)):
            params = {"name": "echo", "arguments": {"value": 1}, "_meta": {"traceparent": meta} if meta else {}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            sent = headers | ({"traceparent": header} if header else {})
            answer = await http.post(f"{daemon.address().http_url}mcp", json=message, headers=sent)
            assert answer.status_code == 200
    await until(lambda: len(collector.spans) == 3)
    assert {(span.trace_id, span.parent_span_id) for span in collector.spans} == {(CALLER.trace_id, CALLER.span_id)}


async def test_an_mcp_server_is_told_the_span(collector: Collector, serve: Any) -> None:
    """A call at another daemon is a child of the call that made it."""
    async with AsyncExitStack() as stack:
        inner, _ = await serve(stack=stack, state="inner", OTEL_SERVICE_NAME="inner")
        token = inner.settings.state_dir / "token"
        source = f"""
            [sources.inner]
            type = "mcp"
            url = "{inner.address().http_url}mcp"
            auth = {{ type = "bearer", file = "{token}" }}
            allow_private = true
        """
        outer, client = await serve(stack=stack, state="outer", toml=source)
        await until(lambda: "inner_echo" in outer.registry)
        await client.call("inner_echo", {"value": 1}, traceparent=TRACEPARENT)
    spans = by_name(collector)
    assert spans["execute_tool echo"].trace_id == CALLER.trace_id
    assert spans["execute_tool echo"].parent_span_id == spans["execute_tool inner_echo"].span_id
    assert attributes(spans["execute_tool inner_echo"])["toold.source"] == "inner"


@pytest.mark.parametrize(
    ("model", "sdk"), [("kimi-k2.6", "auto"), ("glm-4.7-flash", "auto"), ("glm-4.7-flash", "http")]
)
async def test_a_vendors_request_has_the_span_of_the_completion(collector: Collector, model: str, sdk: str) -> None:
    """Over an SDK, which may work in a thread, and over plain HTTP."""
    env = {"TOOLD_OTEL__ENDPOINT": collector.url, "TOOLD_KIMI_SDK": sdk, "TOOLD_GLM_SDK": sdk}
    async with daemon_under_test(env=env) as daemon:
        await daemon.client.call("chat", {"prompt": "Hello", "model": model})
        (asked,) = (request for request in daemon.simulator.log if request.operation == "chat")
    completion = next(span for span in collector.spans if span.name.startswith("chat "))
    sent = parse_traceparent(asked.headers["traceparent"])
    assert sent is not None
    assert (sent.trace_id, sent.span_id) == (completion.trace_id, completion.span_id)


async def test_without_traces_nothing_is_told(collector: Collector) -> None:
    """A caller's span is not passed on by a daemon that does not record its own."""
    async with daemon_under_test() as daemon:
        await daemon.client.call("chat", {"prompt": "Hello"}, traceparent=TRACEPARENT)
        (asked,) = (request for request in daemon.simulator.log if request.operation == "chat")
    assert "traceparent" not in asked.headers


def gate(until_free: asyncio.Event, started: asyncio.Event) -> Tool:
    """A tool that waits; it may run again."""

    class Nothing(Arguments):
        """No arguments."""

    @tool("gate", read_only=True, open_world=True)
    async def wait_at_gate(arguments: Nothing, context: LookupContext) -> str:
        """Wait."""
        started.set()
        await until_free.wait()
        return "through"

    return wait_at_gate


async def test_a_run_is_one_trace_over_a_restart(serve: Any, collector: Collector) -> None:
    """Every span has its parent in it, also children from before the restart, whose parent ended after it."""
    inner = [{"id": "x", "tool_name": "echo", "args": {"value": 1}}, {"id": "y", "tool_name": "gate"}]
    steps = [
        {"id": "first", "tool_name": "echo", "args": {"value": 1}},
        {"id": "inner", "tool_name": "execute_pipeline", "args": {"steps": inner}},
    ]
    started, free = asyncio.Event(), asyncio.Event()
    async with AsyncExitStack() as stack:
        _, client = await serve(gate(free, started), stack=stack)
        arguments = {"steps": steps, "detach": True}
        detached = (await client.call("execute_pipeline", arguments, traceparent=TRACEPARENT)).structured["call_id"]
        await started.wait()
        await until(lambda: sum(span.name == "execute_tool echo" for span in collector.spans) == 2)
    before = len(collector.spans)
    free.set()
    _, client = await serve(gate(free, started))

    async def ended() -> bool:
        return bool((await client.call("call_status", {"call_id": detached})).structured["state"] == "done")

    await until(ended)
    await until(lambda: any(attributes(span)["gen_ai.tool.call.id"] == detached for span in collector.spans))
    run = [span for span in collector.spans if span.trace_id == CALLER.trace_id]
    assert 3 <= before < len(run)
    ids = [span.span_id for span in run]
    assert len(set(ids)) == len(ids)
    roots = [span for span in run if span.parent_span_id not in ids]
    assert [(span.name, span.parent_span_id) for span in roots] == [("execute_tool execute_pipeline", CALLER.span_id)]
    names = [span.name.removeprefix("execute_tool ") for span in run]
    assert names.count("execute_pipeline") == 3  # the one that detached, the detached one, and the inner one


@pytest.mark.parametrize("hold", [threading.Event, lambda: None])
async def test_calls_do_not_wait_for_the_collector(
    serve: Any, collector: Collector, hold: Callable[[], threading.Event | None]
) -> None:
    """Each call gets its answer while the collector hangs or is away; what has no space in the queue is counted."""
    collector.hold = hold()
    away = {} if collector.hold else {"TOOLD_OTEL__ENDPOINT": "http://127.0.0.1:1"}
    daemon, client = await serve(TOOLD_OTEL__QUEUE_SPANS="5", **away)
    await client.call("echo", {"value": 0})
    await until(lambda: daemon.traces.waiting and not len(daemon.traces.queue))
    answers = await asyncio.gather(*(client.call("echo", {"value": number}) for number in range(20)))
    assert [answer.structured for answer in answers] == list(range(20))
    assert daemon.traces.counts() == {"sent": 0, "queue_full": 15, "refused": 0}


async def test_traces_without_their_package_name_the_extra(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon does not start without what was configured."""
    for name in ("otlp_encoding", "collector_client", "span_sender"):
        monkeypatch.delitem(__import__("sys").modules, f"toold.daemon.spans.{name}", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.proto.trace.v1", None)
    with pytest.raises(SettingsError, match=r"otel: traces need the package .*pip install '.\[otel\]'"):
        await serve()
