"""The questions of a server: whose call it asks for, and how often."""

import asyncio
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp_types import ErrorData, ListRootsResult
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.questions.client_question import SAMPLE, QuestionRefusedError
from toold.protocol.questions.question_table import MAX_OF_CALL
from toold.protocol.tool_call import Metadata, Timings, ToolResult
from toold.sources.mcp.session_questions import SessionQuestions, input_responses
from toold.sources.mcp.upstream_exchange import UpstreamExchange
from toold.sources.mcp.upstream_questions import CallQuestions, Sampling

PROMPT = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 1}


class AskedCall:
    """The part of a call's context that questions use."""

    answered_kinds: tuple[str, ...] = ("roots",)
    declared_kinds: tuple[str, ...] = ()

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id

    async def ask_client(self, _: object, *, name: str) -> dict[str, Any]:
        assert name == ""
        return {"roots": [{"uri": f"file:///{self.call_id}"}]}

    async def call_hidden(self, *_: object, **__: object) -> ToolResult:
        return ToolResult(Metadata(0.0, Timings()), structured={"role": "assistant"})


def questions_of(call_id: str, sampling: Sampling = "client") -> CallQuestions:
    return CallQuestions("shop", sampling, cast("Any", AskedCall(call_id)), lambda value: value)


async def test_a_request_without_a_call_is_asked_only_if_one_call_can_have_made_it() -> None:
    """Child calls of one call count as one; with calls of two clients, or without a call, no client is asked."""
    current: ContextVar[UpstreamExchange | None] = ContextVar("test", default=None)
    session, context = SessionQuestions(current), cast("Any", None)
    first, child, other = (UpstreamExchange(questions=questions_of(name)) for name in ("a", "a/step", "b"))
    prompt = cast("Any", SimpleNamespace(tools=None))
    assert await session.list_roots(context) == ListRootsResult(roots=[])
    with session.running(first), session.running(child):
        (root,) = cast("Any", await session.list_roots(context)).roots
        assert str(root.uri) == "file:///a/step"
        with session.running(other):
            assert (await session.list_roots(context)) == ListRootsResult(roots=[])
            assert isinstance(await session.sample(context, prompt), ErrorData)
            current.set(first)  # as on the stream of a call over HTTP
            (root,) = cast("Any", await session.list_roots(context)).roots
            assert str(root.uri) == "file:///a"


class SlowCall(AskedCall):
    """Its client answers once it has all questions."""

    def __init__(self, questions: int) -> None:
        super().__init__("a")
        self._all = asyncio.Barrier(questions)

    async def ask_client(self, _: object, *, name: str) -> dict[str, Any]:
        await self._all.wait()
        if name == "refused":
            raise QuestionRefusedError("No.")
        return {"name": name}


async def test_the_questions_of_a_round_are_asked_at_the_same_time() -> None:
    """A client of the stateless revision gets them in one round too; if one is refused, the call fails."""
    ask = {
        "method": "elicitation/create",
        "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
    }
    for names in (["a", "b", "c"], ["a", "refused"], []):
        questions = CallQuestions("shop", "client", cast("Any", SlowCall(len(names) or 1)), lambda value: value)
        answering = input_responses("shop", {"inputRequests": dict.fromkeys(names, ask)}, questions)
        if "refused" in names:
            with pytest.raises(QuestionRefusedError, match="No"):
                await answering
        else:
            assert await answering == {name: {"name": name} for name in names}


@pytest.mark.parametrize(
    ("kinds", "sampling", "capabilities"),
    [
        ((), "client", {"roots": {}}),
        (("form", "sampling"), "client", {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
        (("url", "sampling_tools"), "client", {"elicitation": {"url": {}}, "sampling": {"tools": {}}, "roots": {}}),
        (("sampling", "sampling_tools"), "daemon", {"sampling": {}, "roots": {}}),
        (("sampling",), "off", {"roots": {}}),
    ],
)
def test_a_server_learns_what_the_client_of_a_call_answers(
    kinds: tuple[str, ...], sampling: Sampling, capabilities: dict[str, Any]
) -> None:
    """And what the daemon answers in its place: roots always, completions if it is set so."""
    call = AskedCall("a")
    call.declared_kinds = kinds
    assert CallQuestions("shop", sampling, cast("Any", call), lambda value: value).capabilities == capabilities


async def test_completions_by_the_daemon_are_bounded() -> None:
    """One call of a server gets so many; with ``off`` it gets none."""
    questions = questions_of("a", "daemon")
    for _ in range(MAX_OF_CALL):
        assert await questions.ask(SAMPLE, PROMPT) == {"role": "assistant"}
    with pytest.raises(QuestionRefusedError, match=f"{MAX_OF_CALL} completions, the limit"):
        await questions.ask(SAMPLE, PROMPT)
    with pytest.raises(QuestionRefusedError, match='sampling = "off"'):
        await questions_of("a", "off").ask(SAMPLE, PROMPT)


async def test_a_completion_that_cannot_be_made_is_refused() -> None:
    """For example, if the budget cannot be read; the server learns the reason."""

    class BrokenCall(AskedCall):
        async def call_hidden(self, *_: object, **__: object) -> ToolResult:
            raise ServiceUnavailableError("The disk does not respond.", executed="no")

    questions = CallQuestions("shop", "daemon", cast("Any", BrokenCall("a")), lambda value: value)
    with pytest.raises(QuestionRefusedError, match="which failed: The disk does not respond"):
        await questions.ask(SAMPLE, PROMPT)
