"""Parsing of answers, complete and in chunks."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from toold.protocol.tool_call import Usage
from toold.providers import Delta, Model, ToolInvocation
from toold.providers.completion_parsing import (
    CompletionAssembly,
    FilteredError,
    InterruptedAnswerError,
    read_answer,
)
from toold.providers.model_catalog import ModelCatalog
from toold.providers.response_values import InvalidResponseError
from toold.providers.tool_call_assembly import MAX_TOOL_CALLS
from toold.providers.usage_parsing import read_usage

MODEL: Model = ModelCatalog.load().default("kimi")


def whole(message: dict[str, Any], finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **fields}


def chunk(delta: dict[str, Any], finish: Any = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish}], **fields}


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_finish_reasons_are_mapped(finish: str, reason: str) -> None:
    """Each vendor's finish reasons map to one of four values. An unknown reason maps to ``stop``."""
    assert read_answer(whole({"content": "Hi."}, finish), MODEL).finish_reason == reason


@pytest.mark.parametrize("finish", [None, "", "network_error"])
def test_answer_without_finish_reason_is_interrupted(finish: str | None) -> None:
    """Without a finish reason, or with GLM's network_error, the answer is incomplete."""
    with pytest.raises(InterruptedAnswerError):
        read_answer(whole({"content": "Hi"}, finish), MODEL)


def test_completely_filtered_answer_is_an_error() -> None:
    """A filtered answer without text is an error."""
    with pytest.raises(FilteredError):
        read_answer(whole({"content": ""}, "sensitive"), MODEL)


def test_model_is_taken_from_the_response() -> None:
    """The model in the response is used. Without one, it is the requested model."""
    assert read_answer(whole({"content": ""}, model="kimi-other"), MODEL).model == "kimi-other"
    assert read_answer(whole({"content": ""}), MODEL).model == MODEL.id


@pytest.mark.parametrize(
    ("mark", "simulated"), [({"simulated": True}, True), ({"simulated": "yes"}, False), ({}, False)]
)
def test_simulated_answers_are_recognised_by_their_mark(mark: dict[str, Any], simulated: bool) -> None:
    """An answer without the mark, complete or streamed, is not simulated."""
    assembly = CompletionAssembly(MODEL)
    assembly.add(chunk({"content": "Hi."}, **mark))
    assembly.add(chunk({}, "stop"))
    assert assembly.completion().simulated is simulated
    assert read_answer(whole({"content": "Hi."}, **mark), MODEL).simulated is simulated


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, None),
        ("many", None),
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 4}, Usage(10, 5, 0, 4)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(10, 5, 2, 3),
        ),
        ({"prompt_tokens": 1, "completion_tokens": None, "prompt_tokens_details": None}, Usage(1, 0)),
    ],
)
def test_usage_is_read_from_all_documented_places(usage: Any, read: Usage | None) -> None:
    """Cached tokens are in the details or next to them. Missing numbers count as zero."""
    assert read_usage(usage) == read


def test_usage_is_found_in_any_chunk() -> None:
    """Usage is read from a separate chunk, from next to the last choice, or from within it."""
    counted = {"prompt_tokens": 7, "completion_tokens": 3}
    for last in (
        [chunk({}, "stop"), {"choices": [], "usage": counted}],
        [chunk({}, "stop", usage=counted)],
        [{"choices": [{"delta": {}, "finish_reason": "stop", "usage": counted}]}],
    ):
        assembly = CompletionAssembly(MODEL)
        for piece in last:
            assembly.add(piece)
        assert assembly.completion().usage == Usage(7, 3)


def cut(text: str, at: list[int]) -> list[str]:
    ends = sorted({min(i, len(text)) for i in at} | {len(text)})
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


CUTS = st.lists(st.integers(0, 40), max_size=6)


@given(st.text(max_size=40), st.text(max_size=40), st.lists(st.text(min_size=1, max_size=40), max_size=3), CUTS)
def test_stream_equals_the_complete_answer(text: str, reasoning: str, calls: list[str], at: list[int]) -> None:
    """However an answer is split into chunks, the assembled completion equals the complete answer, and the deltas are
    its pieces.
    """
    tool_calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": f"tool_{i}", "arguments": json.dumps(argument)}}
        for i, argument in enumerate(calls)
    ]
    message = {"content": text, "reasoning_content": reasoning, "tool_calls": tool_calls}
    expected = read_answer(whole(message, model="m"), MODEL)

    assembly = CompletionAssembly(MODEL)
    chunks = [chunk({"reasoning_content": piece}) for piece in cut(reasoning, at)]
    chunks += [chunk({"content": piece}) for piece in cut(text, at)]
    for index, call in enumerate(tool_calls):
        first, *rest = cut(str(call["function"]["arguments"]), at)  # type: ignore[index] # JSON
        function = {"name": f"tool_{index}", "arguments": first}
        chunks.append(chunk({"tool_calls": [{"index": index, "id": call["id"], "function": function}]}))
        chunks += [chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in rest]
    chunks.append(chunk({}, "stop", model="m"))
    deltas = [delta for piece in chunks if (delta := assembly.add(piece)) is not None]

    assert assembly.completion() == expected
    assert "".join(delta.text for delta in deltas) == text
    assert "".join(delta.reasoning for delta in deltas) == reasoning
    assert joined(deltas) == [(call.id, call.name, call.arguments) for call in expected.tool_calls]
    assert expected.tool_calls == tuple(
        ToolInvocation(f"call_{i}", f"tool_{i}", json.dumps(argument)) for i, argument in enumerate(calls)
    )


def joined(deltas: list[Delta]) -> list[tuple[str, str, str]]:
    """The calls that the pieces make. A call begins after those before it, with id and name."""
    calls: list[tuple[str, str, str]] = []
    for piece in (piece for delta in deltas for piece in delta.tool_calls):
        if piece.id:
            assert (piece.index, bool(piece.name)) == (len(calls), True)
            calls.append((piece.id, piece.name, piece.arguments))
        else:
            call_id, name, arguments = calls[piece.index]
            calls[piece.index] = (call_id, name, arguments + piece.arguments)
    return calls


def piece(call_id: str | None, name: str | None, arguments: str, **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, **fields}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([piece("a", "add", "{", index=0), piece("b", "log", "[", index=0), piece(None, None, "]", index=0)],
         [("a", "add", "{"), ("b", "log", "[]")]),
        ([piece("a", "add", "{"), piece(None, None, "}"), piece("b", "log", "[]")],
         [("a", "add", "{}"), ("b", "log", "[]")]),
        ([piece("a", "add", "{", index=0), piece("b", "log", "[", index=1), piece("a", None, "}", index=1)],
         [("a", "add", "{}"), ("b", "log", "[")]),
        ([piece("", "add", "{}"), piece(None, "log", "[]")], [("call_0", "add", "{}"), ("call_1", "log", "[]")]),
        ([piece(None, "add", "{", index=0), piece("a", None, "}", index=0)], [("a", "add", "{}")]),
        ([piece("a", None, "{", index=0), piece("a", "add", "}", index=0)], [("a", "add", "{}")]),
        ([piece("a", "ad", "", index=0), piece("a", "d", "", index=0), piece("a", None, "1", index=0)],
         [("a", "add", "1")]),
        ([piece("a", "add", "1", index=0), piece("a", "add", "2", index=0)], [("a", "add", "12")]),
        ([piece("a", "add", "", index=0), piece("b", "log", "", index=1)], [("a", "add", "{}"), ("b", "log", "{}")]),
        ([piece(None, "add", "1", index=0), piece("call_0", "log", "2", index=1), piece(None, "log", "3", index=2)],
         [("call_0", "add", "1"), ("call_1", "log", "2"), ("call_2", "log", "3")]),
    ],
    ids=["one index for all", "no index", "a known id with another index", "no ids", "a late id", "a late name",
         "a name in pieces", "a repeated name", "no arguments", "an id like ours"],
)  # fmt: skip
def test_streamed_calls_of_loose_servers_stay_apart(pieces: list[Any], expected: list[Any]) -> None:
    """Some servers send no index, one index for all calls, or no ids: no call is lost or merged with another."""
    assembly = CompletionAssembly(MODEL)
    deltas = [delta for streamed in pieces if (delta := assembly.add(chunk({"tool_calls": [streamed]}))) is not None]
    assert len(deltas) == len(pieces), "each chunk shows that the answer has begun"
    assembly.add(chunk({}, "tool_calls"))
    calls = assembly.completion().tool_calls
    assert [(call.id, call.name, call.arguments) for call in calls] == expected
    for streamed, call in zip(joined(deltas), expected, strict=False):
        assert (streamed[:2], call[2].startswith(streamed[2])) == (call[:2], True)


PIECE = st.builds(
    piece,
    st.sampled_from([None, "", "a", "b", "call_0", "call_1"]),
    st.sampled_from([None, "add", "log"]),
    st.sampled_from(["", "{", "1", "}"]),
    index=st.sampled_from([None, 0, 1, 2]),
)


@given(st.lists(PIECE, max_size=8))
def test_streamed_calls_are_the_beginning_of_the_final_ones(pieces: list[Any]) -> None:
    """Whatever a server sends: what was passed on of a call never changes, and the ids of all calls are unique."""
    assembly = CompletionAssembly(MODEL)
    deltas = [delta for streamed in pieces if (delta := assembly.add(chunk({"tool_calls": [streamed]}))) is not None]
    assembly.add(chunk({}, "stop"))
    calls = assembly.completion().tool_calls
    assert len({call.id for call in calls}) == len(calls)
    for streamed, call in zip(joined(deltas), calls, strict=False):
        assert (streamed[:2], call.arguments.startswith(streamed[2])) == ((call.id, call.name), True)


def test_ids_are_unique_and_calls_are_bounded() -> None:
    """Also if a whole answer has one id for several calls, which is like one of ours. Too many calls are an error."""
    calls = [piece("call_1", "add", "{}")] * 3
    answer = read_answer(whole({"content": "", "tool_calls": calls}), MODEL)
    assert [call.id for call in answer.tool_calls] == ["call_1", "call_1_", "call_2"]
    many = [piece(f"c{number}", "add", "{}") for number in range(MAX_TOOL_CALLS + 1)]
    assert len(read_answer(whole({"tool_calls": many[1:]}), MODEL).tool_calls) == MAX_TOOL_CALLS
    with pytest.raises(InvalidResponseError, match="more than 1,000 tool calls"):
        CompletionAssembly(MODEL).add(chunk({"tool_calls": many}))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "delta", "tool_calls", "function", "content", "usage", "index",
                             "finish_reason", "prompt_tokens_details"]) | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
@example(chunk({"tool_calls": [{"index": [], "function": {"name": 1}}]}))
@example(chunk({"tool_calls": [{"index": "1", "function": "x"}]}))
@example({"choices": [], "usage": {"prompt_tokens_details": "none"}})
@example(whole({"content": ["a"], "tool_calls": {"a": 1}}))
@example(whole({"tool_calls": ["a"]}))
def test_any_json_is_parsed_or_refused(document: Any) -> None:
    """Any JSON gives a completion or one of three errors, and never a crash."""
    for read in (lambda: read_answer(document, MODEL), lambda: CompletionAssembly(MODEL).add(document)):
        with contextlib.suppress(InvalidResponseError, InterruptedAnswerError, FilteredError):
            read()


def test_web_search_results_are_read_from_answers_and_chunks() -> None:
    """GLM puts the pages next to the choices, in any chunk. Invalid entries are skipped."""
    pages = [{"title": "T", "link": "https://a.test", "content": "C", "refer": "ref_1"}, "nothing"]
    (page,) = read_answer(whole({"content": "Hi."}, web_search=pages), MODEL).search_results
    assert (page.title, page.link, page.content, page.reference) == ("T", "https://a.test", "C", "ref_1")
    assembly = CompletionAssembly(MODEL)
    assembly.add(chunk({"content": "Hi."}, web_search=pages))
    assembly.add(chunk({}, "stop"))
    assert assembly.completion().search_results == (page,)
