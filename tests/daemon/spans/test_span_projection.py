"""What a span shows of an ended call or completion."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from toold.daemon.spans import gen_ai_names as gen_ai
from toold.daemon.spans.span_content import MAX_HELD_CHARS, CallContent, call_content, completion_content
from toold.daemon.spans.span_projection import (
    EndedCall,
    EndedCompletion,
    ResponseFacts,
    span_of,
)
from toold.protocol.tool_call import Cost, Metadata, TextContent, Timings, ToolResult, Usage
from toold.protocol.trace_context import TraceParent, span_id_of, trace_id_of
from toold.providers import (
    AttachedFile,
    Completion,
    CompletionRequest,
    FunctionTool,
    ImagePart,
    Message,
    ModelCatalog,
    TextPart,
    ToolInvocation,
)
from toold.tools import AGENT_SOURCE, ValueMask

CALLER = TraceParent(bytes(range(1, 17)), bytes(range(1, 9)), True)
CALL = EndedCall(
    call_id="e-1",
    parent_id=None,
    remote=None,
    orchestration=False,
    tool="chat",
    source="toold",
    started_at=1000.0,
    latency_ms=250.0,
    queue_ms=1.5,
    outcome="ok",
    message=None,
    transport="websocket",
    principal="ada",
    session="editor",
    client="ide 2",
    simulated=False,
)
COMPLETION = EndedCompletion(
    span=TraceParent(b"t" * 16, b"s" * 8, True),
    parent_id=b"p" * 8,
    provider="kimi",
    model="kimi-k3.1-pro",
    temperature=0.5,
    max_tokens=100,
    started_at=1000.0,
    ended_at=1002.0,
    response=ResponseFacts("kimi-k3.1", "stop", Usage(10, 5, 2, 4), Cost(0.25, "USD"), simulated=False),
    error=None,
    message=None,
)
MODEL = ModelCatalog.load().resolve("glm-4.7-flash")


def test_a_call_is_the_execution_of_its_tool() -> None:
    """Name, times and attributes of a client's call; its trace begins with it."""
    span = span_of(CALL)
    assert (span.name, span.kind, span.error) == ("execute_tool chat", "internal", None)
    assert (span.start_s, span.end_s) == (1000.0, 1000.25)
    assert (span.trace_id, span.span_id) == (trace_id_of("e-1"), span_id_of("e-1", orchestration=False))
    assert (span.parent_id, span.remote_parent) == (None, False)
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "chat",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "e-1",
        "user.id": "ada",
        "toold.transport": "websocket",
        "toold.session": "editor",
        "toold.client": "ide 2",
        "toold.queue_ms": 1.5,
    }


def test_a_hosted_agent_is_invoked() -> None:
    """A call of an agent is not the execution of a tool."""
    span = span_of(replace(CALL, source=AGENT_SOURCE, tool="researcher"))
    assert span.name == "invoke_agent researcher"
    assert span.attributes["gen_ai.agent.name"] == "researcher"
    assert "gen_ai.tool.name" not in span.attributes


def test_a_tool_of_a_source_runs_elsewhere() -> None:
    """Its source is named."""
    attributes = span_of(replace(CALL, source="crm")).attributes
    assert (attributes["gen_ai.tool.type"], attributes["toold.source"]) == ("extension", "crm")


def test_a_child_belongs_to_its_parent() -> None:
    """It is in the trace of its root, also after a restart, which is part of the id of its parent."""
    span = span_of(replace(CALL, call_id="e-1/a~0123456789ab/b", parent_id="e-1/a~0123456789ab"))
    assert span.trace_id == trace_id_of("e-1")
    assert span.parent_id == span_id_of("e-1/a", orchestration=True)


def test_the_span_of_a_caller_is_the_parent_of_the_root() -> None:
    """Children are in the caller's trace too, and have their own parents."""
    root, child = span_of(replace(CALL, remote=CALLER)), replace(CALL, remote=CALLER, call_id="e-1/a", parent_id="e-1")
    assert (root.trace_id, root.parent_id, root.remote_parent) == (CALLER.trace_id, CALLER.span_id, True)
    span = span_of(child)
    assert (span.trace_id, span.parent_id, span.remote_parent) == (CALLER.trace_id, root.span_id, False)


@pytest.mark.parametrize(
    ("message", "shown"),
    [("fields: a", "fields: a"), (None, ""), ("api_key=sk-1234567890abcdef", "api_key=[redacted]")],
)
def test_a_failed_call_has_its_code_and_a_redacted_message(message: str | None, shown: str) -> None:
    """The status of the span is an error."""
    span = span_of(replace(CALL, outcome="VALIDATION_ERROR", message=message))
    assert (span.attributes["error.type"], span.error) == ("VALIDATION_ERROR", shown)


def test_names_of_callers_are_bounded() -> None:
    """A caller may send any name for a tool."""
    assert span_of(replace(CALL, tool="x" * 5000)).name == f"execute_tool {'x' * 128}"


def test_the_content_of_a_call_is_redacted() -> None:
    """Arguments are JSON, results text, both without secrets."""
    content = CallContent({"api_key": "secret-1", "files": ["a"]}, "token: abc-123-secret", 0)
    attributes = span_of(replace(CALL, content=content)).attributes
    assert attributes["gen_ai.tool.call.arguments"] == '{"api_key":"[redacted]","files":["a"]}'
    assert "abc-123-secret" not in str(attributes["gen_ai.tool.call.result"])


@pytest.mark.parametrize("frame_bytes", [0, 5_000_000])
def test_long_content_is_not_kept(frame_bytes: int) -> None:
    """Arguments and results beyond the limit are replaced by a note, whether or not their size is known."""
    result = ToolResult(Metadata(1.0, Timings()), (TextContent("y" * (MAX_HELD_CHARS + 1)),))
    content = call_content({"values": ["x" * 1000] * 1000}, frame_bytes, result)
    assert content.arguments == f"[more than {MAX_HELD_CHARS} characters]"
    assert content.result == f"[{MAX_HELD_CHARS + 1} characters]"
    assert content.chars < 100


def test_a_completion_is_a_chat_with_a_model() -> None:
    """Model, tokens and cost of one request to a vendor."""
    span = span_of(COMPLETION)
    assert (span.name, span.kind, span.parent_id) == ("chat kimi-k3.1-pro", "client", b"p" * 8)
    assert (span.trace_id, span.span_id) == (b"t" * 16, b"s" * 8)
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "moonshot_ai",
        "gen_ai.request.model": "kimi-k3.1-pro",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.model": "kimi-k3.1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "toold.cost": 0.25,
        "toold.cost.currency": "USD",
    }


def test_embeddings_have_their_operation_and_dimensions() -> None:
    """There are no messages and no finish reason."""
    response = ResponseFacts("embed-3", None, Usage(10, 0), None, simulated=True, dimensions=256)
    span = span_of(
        replace(
            COMPLETION,
            operation="embeddings",
            encoding="base64",
            temperature=None,
            max_tokens=None,
            model="embed",
            response=response,
        )
    )
    assert span.name == "embeddings embed"
    assert span.attributes == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "moonshot_ai",
        "gen_ai.request.model": "embed",
        "gen_ai.request.encoding_formats": ("base64",),
        "gen_ai.response.model": "embed-3",
        "gen_ai.embeddings.dimension.count": 256,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 0,
        "toold.simulated": True,
    }


def test_a_failed_completion_has_no_response() -> None:
    """The code of the failure is its type."""
    span = span_of(replace(COMPLETION, response=None, error="RATE_LIMITED", message="HTTP 429"))
    assert (span.attributes["error.type"], span.error) == ("RATE_LIMITED", "HTTP 429")


def messages(request: CompletionRequest, completion: Completion | None = None, mask: ValueMask | None = None) -> Any:
    content = completion_content(request, completion, mask)
    attributes = span_of(replace(COMPLETION, content=content)).attributes
    return [
        attributes.get(name)
        for name in (gen_ai.SYSTEM_INSTRUCTIONS, gen_ai.INPUT_MESSAGES, gen_ai.TOOL_DEFINITIONS, gen_ai.OUTPUT_MESSAGES)
    ]


def test_the_messages_of_a_completion_are_in_the_form_of_the_conventions() -> None:
    """Texts, images, tool calls with their results, files and the answer."""
    request = CompletionRequest(
        MODEL,
        (
            Message("system", "Be brief."),
            Message(
                "user", (TextPart("What is it?"), ImagePart("https://x/a.png"), ImagePart("data:image/png;base64,aa"))
            ),
            Message("assistant", "", (ToolInvocation("c1", "look", '{"token":"abc"}'),), reasoning="Look first."),
            Message("tool", "a cat", tool_call_id="c1"),
        ),
        tools=(FunctionTool("look", "Looks.", {"type": "object"}),),
        files=(AttachedFile("a.txt", "text"),),
    )
    answer = Completion("A cat.", "m", "stop", None, reasoning="Done.")
    system, sent, functions, answered = map(json.loads, messages(request, answer))
    assert system == [text("Be brief.")]
    assert sent == [
        {
            "role": "user",
            "parts": [
                text("What is it?"),
                {"type": "uri", "modality": "image", "uri": "https://x/a.png"},
                text("[image of 24 characters]"),
                text("a.txt\ntext"),
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Look first."},
                {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"token": "[redacted]"}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a cat"}]},
    ]
    assert functions == [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    ]
    assert answered == [
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "Done."}, text("A cat.")],
            "finish_reason": "stop",
        }
    ]


def text(content: str) -> dict[str, str]:
    return {"type": "text", "content": content}


def test_of_a_long_conversation_the_latest_messages_are_sent() -> None:
    """A note says how many earlier ones are missing."""
    request = CompletionRequest(MODEL, tuple(Message("user", f"{number} " + "x" * 30_000) for number in range(5)))
    _, sent, _, _ = messages(request)
    assert "[3 earlier messages]" in sent
    assert '"4 xxx' in sent
    assert '"2 xxx' not in sent


def test_all_parts_of_a_completion_count() -> None:
    """Reasoning, tool calls and functions take space in the queue and in the span as texts do; an image that is sent as
    data takes space in the queue only."""
    long = "x" * 40_000
    call = ToolInvocation("c1", "look", f'{{"a":"{long}"}}')
    rows = [
        Message("user", (ImagePart(f"data:image/png;base64,{long * 2}"),)),
        Message("user", "second"),
        Message("assistant", "", (call,), reasoning=long),
        Message("user", "last"),
    ]
    functions = (FunctionTool("look", "Looks.", {"properties": {"a": {"description": long}}}),)
    answer = Completion("", "m", "tool_calls", None, tool_calls=(call,))
    request = CompletionRequest(MODEL, tuple(rows), tools=functions)
    assert completion_content(request, answer, None).chars > 6 * len(long)
    assert "[3 earlier messages]" in messages(request)[1]
    request = CompletionRequest(MODEL, (rows[0], rows[1], rows[3]))
    assert "earlier messages" not in messages(request)[1]


def test_bound_values_of_a_tool_are_masked_in_its_messages() -> None:
    """A prompt may contain what the operator bound."""
    _, sent, _, _ = messages(
        CompletionRequest(MODEL, (Message("user", "use qwertz-99"),)), None, ValueMask(["qwertz-99"])
    )
    assert "qwertz-99" not in sent
