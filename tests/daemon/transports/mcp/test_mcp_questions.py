"""Questions of tools to clients of ``/mcp``: with the official SDK's client, and what hostile clients try."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import mcp_types as types
import pytest
from mcp.client import Client as SdkClient
from pydantic import BaseModel, Field
from tests.waiting import until
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.protocol.questions.client_question import ELICIT, LIST_ROOTS, SAMPLE, QuestionRefusedError, read_question
from toold.protocol.questions.question_table import MAX_OPEN_OF_CALL
from toold.tools import Tool

from .conftest import ASKED, STATELESS, Client, Connect, Json, Serve, events, request

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
MODES = pytest.mark.parametrize("mode", ["legacy", STATELESS])


class Booking(BaseModel):
    """A form."""

    name: str
    seats: int = Field(ge=1, le=9)
    meal: Literal["fish", "none"] = "none"
    window: bool | None = None


async def book(_: Any, context: Any) -> str:
    """Asks for a form."""
    booking = await context.elicit("Whose seats?", Booking, name="booking")
    return "declined" if booking is None else f"{booking.name} {booking.seats} {booking.meal} {booking.window}"


async def everything(_: Any, context: Any) -> dict[str, Any]:
    """Asks three questions at once, then one more."""
    prompt = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}
    first = await asyncio.gather(
        context.ask_client(read_question(SAMPLE, prompt, "news")),
        context.ask_client(read_question(LIST_ROOTS, {})),
        context.elicit("Whose seats?", Booking),
    )
    last = await context.elicit("And again?", Booking)
    return {"sampled": first[0]["content"]["text"], "roots": first[1]["roots"], "names": [first[2].name, last.name]}


async def many(_: Any, context: Any) -> dict[str, int]:
    """Asks 10,000 questions at once."""
    question = read_question(ELICIT, {"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
    asked = await asyncio.gather(*(context.ask_client(question) for _ in range(10_000)), return_exceptions=True)
    return {"refused": sum(isinstance(answer, Exception) for answer in asked)}


@pytest.fixture
async def daemon(serve: Serve, make_tool: Callable[..., Tool]) -> Daemon:
    return await serve(*(make_tool(tool.__name__, tool) for tool in (book, everything, many)))


def sdk_client(daemon: Daemon, mode: str, **callbacks: Any) -> SdkClient:
    return SdkClient(f"http://127.0.0.1:{daemon.http.port}/mcp", mode=mode, cache=None, **callbacks)


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def fill_in(_: Any, params: Any) -> types.ElicitResult:
    assert params.message in {"Whose seats?", "And again?"}
    assert params.requested_schema["properties"]["meal"]["enum"] == ["fish", "none"]
    return types.ElicitResult(action="accept", content={"name": "Ada", "seats": 2})


async def complete(_: Any, params: Any) -> types.CreateMessageResult:
    assert params.messages[0].content.text == "Hi"
    text = types.TextContent(type="text", text="Hello")
    return types.CreateMessageResult(role="assistant", content=text, model="m")


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


@MODES
async def test_a_question_reaches_the_official_client(daemon: Daemon, mode: str) -> None:
    """Its answer reaches the tool, validated."""
    async with sdk_client(daemon, mode, elicitation_callback=fill_in) as client:
        result = await client.call_tool("book", {})
        assert text_of(result) == "Ada 2 none None"


@MODES
async def test_questions_of_each_kind_are_answered(daemon: Daemon, mode: str) -> None:
    """Several at once, and in several rounds."""
    callbacks = {"elicitation_callback": fill_in, "sampling_callback": complete, "list_roots_callback": roots}
    async with sdk_client(daemon, mode, **callbacks) as client:
        result = await client.call_tool("everything", {})
        assert result.structured_content == {
            "sampled": "Hello",
            "roots": [{"uri": "file:///work"}],
            "names": ["Ada", "Ada"],
        }


async def test_a_client_without_the_capability_gets_an_error(daemon: Daemon) -> None:
    """The result says what the client cannot do, in the revisions that have no error for it."""
    async with sdk_client(daemon, "legacy", list_roots_callback=roots) as client:
        result = await client.call_tool("book", {})
        assert result.is_error
        assert "has not declared that it can show a form" in text_of(result)


async def test_a_missing_capability_is_an_error_of_the_request(daemon: Daemon, connect: Connect) -> None:
    """In 2026-07-28: -32021 with HTTP 400, and the capabilities that the client would have to declare."""
    status, error = await connect(daemon).error("tools/call", {"name": "book"})
    assert (status, error["code"]) == (400, -32021)
    assert (
        error["message"]
        == "The tool asked its caller, but this client has not declared that it can show a form (elicitation)."
    )
    assert error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}


async def test_a_tool_may_do_without_an_undeclared_capability(serve: Serve, make_tool: Any, connect: Connect) -> None:
    """Then the call has its result: the capability was not required."""

    async def alone(arguments: Any, context: Any) -> str:
        try:
            return await book(arguments, context)
        except QuestionRefusedError:
            return "nobody asked"

    result = await connect(await serve(make_tool("alone", alone))).call("alone")
    assert result["content"][0]["text"] == "nobody asked"


ADA: Json = {"action": "accept", "content": {"name": "Ada", "seats": 1}}


async def test_answers_that_come_with_a_new_call_count_by_their_names(daemon: Daemon, connect: Connect) -> None:
    """So a client may bring what it knows will be asked; other answers are ignored."""
    brought = {"booking": ADA, "else": {"action": "accept"}}
    result = await connect(daemon).result("tools/call", {"name": "book", **asking(), "inputResponses": brought})
    assert (result["resultType"], result["content"][0]["text"]) == ("complete", "Ada 1 none None")


@pytest.mark.parametrize("brought", [{}, {"else": ADA}, {"booking": 12}, {"booking": {"action": "accept"}}])
async def test_a_new_call_asks_what_its_answers_do_not_answer(daemon: Daemon, connect: Connect, brought: Json) -> None:
    """Missing answers, and those that do not fit the question, are asked for."""
    client = connect(daemon)
    first = await client.result("tools/call", {"name": "book", **asking(), "inputResponses": brought})
    assert (first["resultType"], set(first["inputRequests"])) == ("input_required", {"booking"})
    repeated = {"name": "book", **asking(), "requestState": first["requestState"], "inputResponses": {"booking": ADA}}
    assert (await client.result("tools/call", repeated))["content"][0]["text"] == "Ada 1 none None"


async def test_an_answer_that_comes_with_a_new_call_counts_once(serve: Serve, make_tool: Any, connect: Connect) -> None:
    """A second question of the same name is asked."""

    async def twice(arguments: Any, context: Any) -> str:
        return f"{await book(arguments, context)}, {await book(arguments, context)}"

    client = connect(await serve(make_tool("twice", twice)))
    params = {"name": "twice", **asking(), "inputResponses": {"booking": ADA}}
    first = await client.result("tools/call", params)
    assert first["resultType"] == "input_required"
    last = await client.result("tools/call", {**params, "requestState": first["requestState"]})
    assert last["content"][0]["text"] == "Ada 1 none None, Ada 1 none None"


@pytest.mark.parametrize("brought", [None, 7, []])
async def test_answers_must_be_an_object(daemon: Daemon, connect: Connect, brought: object) -> None:
    """Anything else is an error of the request."""
    params = {"name": "book", **asking(), "inputResponses": brought}
    status, error = await connect(daemon).error("tools/call", params)
    assert (status, error["code"], error["message"]) == (400, -32602, "params.inputResponses must be an object.")


@MODES
async def test_an_invalid_answer_is_an_error_of_the_tool(daemon: Daemon, mode: str) -> None:
    """A value out of its bounds does not reach the tool."""

    async def wrong(_: Any, __: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada", "seats": 99})

    async with sdk_client(daemon, mode, elicitation_callback=wrong) as client:
        result = await client.call_tool("book", {})
        assert result.is_error
        assert "content.seats must be 9 or less" in text_of(result)


async def test_only_the_bounded_number_of_questions_is_asked(daemon: Daemon) -> None:
    """The others are refused at once."""
    async with sdk_client(daemon, STATELESS, elicitation_callback=lambda _, __: decline()) as client:
        result = await client.call_tool("many", {})
        assert result.structured_content == {"refused": 10_000 - MAX_OPEN_OF_CALL}


async def decline() -> types.ElicitResult:
    return types.ElicitResult(action="decline")


def asking(revision: str = STATELESS) -> Json:
    return {"_meta": {CAPABILITIES: {"elicitation": {}}}} if revision == STATELESS else {}


async def test_a_state_is_good_for_its_own_call_once(daemon: Daemon, connect: Connect) -> None:
    """A changed state, other arguments, and a second answer are refused; missing answers are asked for again."""
    client = connect(daemon)
    first = await client.result("tools/call", {"name": "book", **asking()})
    assert first["resultType"] == "input_required"
    assert set(first["inputRequests"]) == {"booking"}
    state = first["requestState"]
    for wrong in ({"requestState": f"{state}x"}, {"requestState": state, "arguments": {"other": 1}}):
        status, error = await client.error("tools/call", {"name": "book", **asking(), **wrong})
        assert (status, error["code"], error["data"]["reason"]) == (400, -32602, "invalid_request_state")
    answers = {"booking": {"action": "accept", "content": {"name": "Ada", "seats": 1}}}
    repeated = {"name": "book", **asking(), "requestState": state}
    second = await client.result("tools/call", {**repeated, "inputResponses": {"else": {}}})
    assert (second["resultType"], set(second["inputRequests"])) == ("input_required", {"booking"})
    assert second["requestState"] != state
    repeated["requestState"] = second["requestState"]
    last = await client.result("tools/call", {**repeated, "inputResponses": answers})
    assert last["content"][0]["text"] == "Ada 1 none None"
    assert (await client.error("tools/call", {**repeated, "inputResponses": answers}))[1]["code"] == -32602


async def test_a_state_of_another_principal_is_refused(serve: Serve, make_tool: Any, connect: Connect) -> None:
    """Even if the other principal has stolen the state."""
    daemon = await serve(make_tool("book", book), TOOLD_AUTH="true")
    created: list[str] = []

    def add(tokens: TokenBook) -> TokenBook:
        for name in ("ada", "eve"):
            tokens, token = tokens.with_new(name, 1.0)
            created.append(token)
        return tokens

    change_tokens(daemon.settings.state_dir, add)
    await until(lambda: len(daemon.tokens.book.tokens) == 2)
    client = connect(daemon)
    ada, eve = ({"authorization": f"Bearer {token}"} for token in created)
    first = await client.result("tools/call", {"name": "book", **asking()}, headers=ada)
    answers = {"booking": {"action": "decline"}}
    repeated = {"name": "book", **asking(), "requestState": first["requestState"], "inputResponses": answers}
    assert (await client.error("tools/call", repeated, headers=eve))[1]["code"] == -32602
    assert (await client.result("tools/call", repeated, headers=ada))["content"][0]["text"] == "declined"


async def labelled(client: Client) -> str:
    """Returns the label of a new client that shows forms."""
    opening = await client.ask("initialize", {"protocolVersion": ASKED, "capabilities": {"elicitation": {}}})
    return opening.headers["mcp-session-id"]


@asynccontextmanager
async def calling(http: httpx.AsyncClient, label: str) -> AsyncIterator[AsyncIterator[Json]]:
    """Calls ``book``; yields the messages of the answer's stream."""
    message, headers = request("tools/call", {"name": "book"}, revision=ASKED)
    async with http.stream("POST", "/mcp", json=message, headers=headers | {"mcp-session-id": label}) as response:
        yield (events(line)[0] async for line in response.aiter_lines() if line.startswith("data: "))


async def test_answers_by_post_need_the_id_and_the_label_of_the_question(daemon: Daemon, connect: Connect) -> None:
    """Others are refused with 400, and so is a second answer."""
    client = connect(daemon, ASKED)
    label, other = await labelled(client), await labelled(client)

    async def reply(request_id: object, session: str) -> int:
        result = {"action": "accept", "content": {"name": "Ada", "seats": 3, "meal": "fish"}}
        body = {"jsonrpc": "2.0", "id": request_id, "result": result}
        headers = {"mcp-protocol-version": ASKED, "mcp-session-id": session, "accept": "application/json"}
        return (await client.http.post("/mcp", json=body, headers=headers)).status_code

    async with calling(client.http, label) as stream:
        question = await anext(stream)
        assert question["method"] == "elicitation/create"
        assert [await reply("x", label), await reply(7, label), await reply(question["id"], other)] == [400, 400, 400]
        assert [await reply(question["id"], label), await reply(question["id"], label)] == [202, 400]
        assert (await anext(stream))["result"]["content"][0]["text"] == "Ada 3 fish None"


async def test_an_abandoned_call_ends_with_its_question(serve: Serve, make_tool: Any, connect: Connect) -> None:
    """A client that never answers leaves nothing behind."""
    daemon = await serve(make_tool("book", book), TOOLD_QUESTION_TIMEOUT_S="0.2")
    first = await connect(daemon).result("tools/call", {"name": "book", **asking()})
    while daemon.router.accepted or len(daemon.router.questions):
        await asyncio.sleep(0.01)
    repeated = {"name": "book", **asking(), "requestState": first["requestState"]}
    assert (await connect(daemon).error("tools/call", repeated))[1]["code"] == -32602


async def test_a_task_asks_by_its_status(serve: Serve, make_tool: Any, connect: Connect) -> None:
    """``tasks/get`` has the question, and ``tasks/update`` takes the answer."""
    asked = asyncio.Event()

    async def slow(arguments: Any, context: Any) -> str:
        await asked.wait()
        return await book(arguments, context)

    daemon = await serve(make_tool("slow", slow))
    client = connect(daemon)
    meta: Json = {CAPABILITIES: {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}}
    task = await client.result("tools/call", {"name": "slow", "_meta": meta})
    asked.set()
    state: Json = {}
    while state.get("status") != "input_required":
        state = await client.result("tasks/get", {"taskId": task["taskId"]}, tasks=True)
    responses = {"booking": {"action": "decline"}, "else": {}}
    await client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": responses}, tasks=True)
    while state["status"] != "completed":
        state = await client.result("tasks/get", {"taskId": task["taskId"]}, tasks=True)
    assert state["result"]["content"][0]["text"] == "declined"


async def test_questions_of_a_cancelled_call_are_withdrawn(daemon: Daemon, connect: Connect) -> None:
    """A late answer is refused."""
    client = connect(daemon, ASKED)
    label = await labelled(client)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    headers = {"mcp-protocol-version": ASKED, "mcp-session-id": label, "accept": "application/json"}
    async with calling(client.http, label) as stream:
        question = await anext(stream)
        await client.http.post("/mcp", json=cancel, headers=headers)
        assert [message async for message in stream if "id" in message and message["id"] != 1] == []
        late = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert (await client.http.post("/mcp", json=late, headers=headers)).status_code == 400
    assert len(daemon.router.questions) == 0
