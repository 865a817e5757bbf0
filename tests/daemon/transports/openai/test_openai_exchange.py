"""The parts of a streamed answer, read by the accumulator of the ``openai`` SDK."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from toold.daemon.transports.openai.openai_exchange import OpenAIExchange, stream_forms
from toold.protocol.openai.openai_chat_response import AnswerIdentity
from toold.protocol.tool_call import AnswerPiece, Metadata, ReasoningPiece, Timings, ToolCallPiece, ToolResult

IDENTITY: Final = AnswerIdentity("chatcmpl-1", 0, "m")
EXTRA: Final = {"google": {"thought_signature": "s"}}


def answered(message: dict[str, Any]) -> ToolResult:
    data = {"model": "m", "provider": "p", "message": message, "finish_reason": "stop"}
    return ToolResult(outputs=(), structured=data, metadata=Metadata(1.0, Timings()))


def read(events: bytes) -> dict[str, Any]:
    """The message that the SDK assembles from the events of a stream."""
    state: Any = ChatCompletionStreamState()
    for event in events.split(b"\n\n"):
        if event not in {b"", b"data: [DONE]"}:
            state.handle_chunk(ChatCompletionChunk.model_validate(json.loads(event.removeprefix(b"data: "))))
    message: dict[str, Any] = state.current_completion_snapshot.choices[0].message.to_dict()
    return message


TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PIECES: Final = st.lists(
    st.one_of(
        TEXT.filter(bool),
        st.builds(ReasoningPiece, TEXT.filter(bool)),
        st.builds(ToolCallPiece, st.just(-1), arguments=TEXT.filter(bool)),  # of the call that began last
        st.sampled_from(["begin", "begin with extra content"]).map(lambda words: ToolCallPiece(-2, name=words)),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(PIECES, st.sets(st.integers(0, 12)), st.booleans())
def test_any_pieces_and_the_rest_are_the_whole_answer(pieces: list[Any], reads: set[int], late: bool) -> None:
    """However the pieces come, whenever the client reads, and whatever comes with the end only: what the SDK
    assembles is the message of the whole answer.
    """
    exchange = OpenAIExchange(*stream_forms(lambda: IDENTITY, include_usage=False))
    exchange.late = late
    running: Any = None
    text, reasoning, calls, events = "", "", list[dict[str, Any]](), b""
    for number, piece in enumerate(pieces):
        if isinstance(piece, str):
            text += piece
            exchange.chunk(running, piece)
        elif isinstance(piece, ReasoningPiece):
            reasoning += piece.text
            exchange.piece(running, piece)
        elif piece.index == -2:
            function = {"name": f"f{len(calls)}", "arguments": ""}
            call: dict[str, Any] = {"id": f"c{len(calls)}", "type": "function", "function": function}
            extra = EXTRA if "extra" in piece.name else None
            exchange.piece(running, ToolCallPiece(len(calls), call["id"], function["name"], extra_content=extra))
            calls.append({**call, "extra_content": extra} if extra else call)
        elif calls:
            calls[-1]["function"]["arguments"] += piece.arguments
            exchange.piece(running, ToolCallPiece(len(calls) - 1, arguments=piece.arguments))
        if number in reads:
            events += exchange.events()
    events += exchange.events()
    message: dict[str, Any] = {"role": "assistant", "content": f"{text} end"}
    if reasoning:
        message["reasoning_content"] = f"{reasoning} end"
    unstreamed = {"id": "last", "type": "function", "function": {"name": "last", "arguments": "{}"}}
    message["tool_calls"] = [*calls, unstreamed]
    events += exchange.render(running, answered(message))
    assembled = read(events)
    for index, assembled_call in enumerate(assembled["tool_calls"]):
        assert assembled_call.pop("index") == index
        assembled_call["function"].pop("parsed_arguments", None)
    assert {field: assembled.get(field) for field in message} == message


def test_unread_pieces_of_the_same_part_are_joined() -> None:
    """A slow client gets one event per part, in the order in which they began; the first has the role."""
    exchange = OpenAIExchange(*stream_forms(lambda: IDENTITY, include_usage=False))
    running: Any = None
    pieces: list[str | AnswerPiece] = [
        *(ReasoningPiece("a"), ReasoningPiece("b"), "c", "d"),
        *(ToolCallPiece(0, "i", "f", "{"), ToolCallPiece(0, arguments="}"), ToolCallPiece(1, "j", "g", "[")),
    ]
    for piece in pieces:
        if isinstance(piece, str):
            exchange.chunk(running, piece)
        else:
            exchange.piece(running, piece)
    sent = exchange.events().split(b"\n\n")[:-1]
    deltas = [json.loads(event.removeprefix(b"data: "))["choices"][0]["delta"] for event in sent]
    assert deltas == [
        {"role": "assistant", "reasoning_content": "ab"},
        {"content": "cd"},
        {"tool_calls": [{"index": 0, "id": "i", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 1, "id": "j", "type": "function", "function": {"name": "g", "arguments": "["}}]},
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_vendor_wants_back_is_in_the_answer(stream: bool) -> None:
    """Gemini's signature of a call reaches the client, which sends it back with the call."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": EXTRA}
    exchange = OpenAIExchange(*stream_forms(lambda: IDENTITY, include_usage=False))
    if stream:
        running: Any = None
        exchange.piece(running, ToolCallPiece(0, "c", "f", "{}", EXTRA))
    events = exchange.events() + exchange.render(
        None,  # type: ignore[arg-type] # it is not read
        answered({"role": "assistant", "content": None, "tool_calls": [call]}),
    )
    assert read(events)["tool_calls"][0]["extra_content"] == EXTRA
