"""Conversational answers as clients read them that read texts only, over real sockets."""

import json
from typing import Any

import pytest
from toold.tools import Arguments, ToolContext, ToolOutput, load_registry, tool

TOOLS = tuple(tool for tool in load_registry().tools if tool.name in {"chat", "debug", "echo"})


async def answer_of(peer: Any, request_id: int, name: str, **arguments: Any) -> Any:
    await peer.send("call_tool", request_id=request_id, name=name, arguments=arguments)
    answer = (await peer.until_answered(request_id))[-1]
    assert answer["error"] is None
    return answer


async def test_a_text_only_client_continues_a_conversation(serve: Any, join: Any) -> None:
    """The last text has the id that the data has; the tool's text stays as it is; other tools have no such text."""
    peer = await join(await serve(*TOOLS))
    for number, (name, arguments) in enumerate([("chat", {"prompt": "Hi"}), ("debug", {"step": "Why?"})]):
        first = await answer_of(peer, number, name, **arguments)
        line = first["outputs"][-1]["text"]
        assert line == f"continuation_id: {first['structured']['continuation_id']}"
        then = await answer_of(peer, number + 10, "chat", prompt="And?", continuation_id=line.split(": ")[1])
        assert then["outputs"][-1]["text"] == line
    assert (await answer_of(peer, 99, "echo", text="continuation_id"))["outputs"] == [
        {"type": "text", "text": "continuation_id"}
    ]


async def test_a_former_name_makes_the_session_get_json(serve: Any, join: Any) -> None:
    """From the call with the former name on, answers are JSON; texts as numbers alone do not count."""
    daemon = await serve(*TOOLS)
    peer = await join(daemon)
    modern = await answer_of(peer, 1, "chat", prompt="Hi", temperature="0.5")
    assert not modern["outputs"][0]["text"].startswith("{")
    for number, arguments in ((2, {"use_websearch": False}), (3, {})):
        answer = json.loads((await answer_of(peer, number, "chat", prompt="Hi", **arguments))["outputs"][0]["text"])
        assert answer["status"] == "continuation_available"
    other = await answer_of(await join(daemon), 1, "chat", prompt="Hi")
    assert not other["outputs"][0]["text"].startswith("{")


async def test_a_lost_conversation_is_reported_each_time(serve: Any, join: Any) -> None:
    """A notice about the form comes once per session in the text; that the earlier turns are missing concerns the
    call.
    """
    peer = await join(await serve(*TOOLS))
    for number in range(2):
        answer = await answer_of(peer, number, "chat", prompt="Hi", continuation_id="mine", use_websearch=False)
        texts = " ".join(block["text"] for block in answer["outputs"])
        assert "this began a new piece of work" in texts
        assert ("use_websearch is now web_search" in texts) == (number == 0)


@pytest.mark.parametrize(
    ("env", "features", "former"),
    [({"EXAI_WS_HELLO_TIMEOUT": "9"}, None, True), ({"EXAI_WS_HELLO_TIMEOUT": "9"}, ["ack"], False), ({}, None, False)],
)
async def test_scripts_of_a_daemon_with_former_variables_are_former_clients(
    serve: Any, join: Any, env: dict[str, str], features: list[str] | None, former: bool
) -> None:
    """Its operator came from EX-AI: a plain client gets JSON and the changed default from its first call on; clients
    with features, and those of another daemon, do not.
    """
    peer = await join(await serve(*TOOLS, **env), features=features)
    texts = [block["text"] for block in (await answer_of(peer, 1, "chat", prompt="Hi"))["outputs"]]
    assert texts[0].startswith("{") == former
    assert any("searched by default" in text for text in texts) == former


class _Talk(Arguments):
    continuation_id: str | None = None


@tool("talk", read_only=True, open_world=False)
async def talk(_arguments: _Talk, _context: ToolContext) -> ToolOutput:
    """Answers at length in a conversation."""
    return ToolOutput("x" * 100_000, {"continuation_id": "c-1"})


async def test_a_spilled_answer_keeps_the_id(serve: Any, join: Any) -> None:
    """The data is a handle then, so the text is the only place of the id."""
    peer = await join(await serve(talk, TOOLD_SPILL_BYTES="65536"))
    answer = await answer_of(peer, 1, "talk")
    assert answer["metadata"]["spilled"]
    assert "read_result" in answer["outputs"][0]["text"]
    assert answer["outputs"][1]["text"] == "continuation_id: c-1"


async def test_errors_are_json_texts_too(serve: Any, join: Any) -> None:
    """A client that reads texts only learns why its call was refused or failed; other sessions have no text."""
    daemon = await serve(*TOOLS)
    for features, has_text in ((["json_text"], True), (None, False)):
        peer = await join(daemon, features=features)
        for number, arguments in enumerate([{}, {"prompt": "Hi", "continuation_id": "0" * 32}]):
            await peer.send("call_tool", request_id=number, name="chat", arguments=arguments)
            answer = (await peer.until_answered(number))[-1]
            assert not answer["ok"]
            texts = [json.loads(block["text"]) for block in answer["outputs"]]
            code = answer["error"]["code"]
            assert [(text["status"], text["content"].startswith(code)) for text in texts] == [
                ("error", True)
            ] * has_text


@pytest.mark.parametrize(
    ("features", "environment", "is_json"),
    [
        (["json_text"], {}, True),
        (None, {"TOOLD_RESULT_TEXT": "json"}, True),
        (["prose_text"], {"TOOLD_RESULT_TEXT": "json"}, False),
    ],
)
async def test_the_form_is_chosen_per_session(
    serve: Any, join: Any, features: Any, environment: dict[str, str], is_json: bool
) -> None:
    """A step tool's JSON has the step, in a session whose client or operator chose it."""
    daemon = await serve(*TOOLS, **environment)
    peer = await join(daemon, features=features)
    text = (await answer_of(peer, 1, "debug", step="Why?", total_steps=2))["outputs"][0]["text"]
    assert text.startswith("{") == is_json
    if is_json:
        answer = json.loads(text)
        assert (answer["status"], answer["step_number"], answer["total_steps"]) == ("pause_for_investigation", 1, 2)
        assert answer["next_step_required"] is True
