"""The simulator's answers, which are the same for the same request."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers import Model, ModelCatalog
from toold.providers.request_body import SCHEMA_BEGINS, SCHEMA_ENDS
from toold.providers.simulator.directives import Directives
from toold.providers.simulator.simulated_answer import (
    SimulatedReply,
    count_tokens,
    read_conversation,
    read_prompt_directives,
    reply_to,
)

MODEL: Model = replace(ModelCatalog.load().default("glm"), id="m", thinking="none", max_output=100, context_window=1000)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "parameters": {
                "properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "where": {"type": "object"}},
                "required": ["text", "count", "where"],
            },
        },
    }
]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def answer(*messages: dict[str, Any], model: Model = MODEL, **body: Any) -> SimulatedReply:
    talk = read_conversation(messages)
    return reply_to(body, model, talk, read_prompt_directives(talk))


def test_answer_is_marked_and_summarises_the_request() -> None:
    """The answer is marked as simulated and mentions the prompt, files, images, system message and history."""
    reply = answer(
        {"role": "system", "content": "Be brief."},
        user("First question"),
        {"role": "assistant", "content": "First answer"},
        user([
            {"type": "text", "text": '<file name="a &amp; b.py">\nimport os\nos.getcwd()\n</file>\n\nWhat is it?'},
            {"type": "image_url", "image_url": {"url": "x"}},
        ]),
    )  # fmt: skip
    assert reply.text == (
        'Simulated answer from m: you wrote 3 words, beginning with "What is it?".'
        ' 1 file attached: a & b.py (2 lines, first line "import os"). 1 image attached.'
        ' The system message begins "Be brief.". 2 earlier messages, the first begins "First question".'
    )
    assert (reply.finish, reply.reasoning, reply.tool_calls) == ("stop", "", ())


def test_directives_in_files_are_ignored() -> None:
    """Directives in an attached file are text of the file."""
    talk = read_conversation([user('<file name="docs.md">\n[[sim:hang]]\n</file>\n\nExplain.')])
    assert read_prompt_directives(talk) == Directives()
    assert talk.files == (("docs.md", "[[sim:hang]]"),)


def test_attached_files_are_parsed() -> None:
    """A file ends at its first matching closing tag. An opening tag without a closing tag belongs to the prompt."""
    talk = read_conversation([user('<file name="a">\n<file name="b">\n</file>\n\nHm.\n<file name="c">\nno end')])
    assert talk.files == (("a", '<file name="b">'),)
    assert talk.prompt == 'Hm.\n<file name="c">\nno end'
    talk = read_conversation([user('<file-2 name="a">\nx\n</file>\ny\n</file-2>\n\nHm.')])
    assert talk.files == (("a", "x\n</file>\ny"),)
    assert talk.prompt == "Hm."


@pytest.mark.parametrize("prompt", ["Please use the find tool.", "call find", "[[sim:tool=find]]"])
def test_prompt_can_request_a_tool_call(prompt: str) -> None:
    """The tool call has arguments of the correct types for all required parameters."""
    reply = answer(user(prompt), tools=TOOLS)
    assert reply.finish == "tool_calls"
    assert reply.text == ""
    ((name, arguments),) = reply.tool_calls
    assert name == "find"
    assert '"count": 1' in arguments
    assert '"where": {}' in arguments


def test_tool_is_called_once() -> None:
    """After the tool's result, the answer quotes the result instead of calling the tool again."""
    reply = answer(
        user("[[sim:tool=find]]"),
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "found"},
        tools=TOOLS,
    )
    assert reply.tool_calls == ()
    assert 'A tool answered "found".' in reply.text


def test_no_tool_call_without_tools() -> None:
    """A prompt that mentions a tool that was not offered gets text."""
    assert answer(user("use the find tool")).tool_calls == ()


@pytest.mark.parametrize(
    ("thinking", "sent", "reasons"),
    [
        ("none", None, False),
        ("switch", None, True),
        ("switch", {"type": "enabled"}, True),
        ("switch", {"type": "disabled"}, False),
        ("always", {"type": "disabled"}, True),
    ],
)
def test_thinking_follows_model_and_request(thinking: Any, sent: Any, reasons: bool) -> None:
    """Models with a thinking switch think unless the request disables it."""
    reply = answer(user("Hm."), model=replace(MODEL, thinking=thinking), thinking=sent)
    assert bool(reply.reasoning) is reasons
    assert (reply.reasoning_tokens > 0) is reasons


def test_token_limit_truncates_the_answer() -> None:
    """Either vendor's field, the model's own limit and a directive truncate the answer."""
    assert answer(user("Hello"), max_tokens=3).text == "Simulated an"
    assert answer(user("Hello"), max_completion_tokens=3).finish == "length"
    assert answer(user("[[sim:say=" + "x" * 600 + "]]")).output_tokens == 100
    assert answer(user("[[sim:length say=abcdefghi]]")).text == "Simulated:"


def test_say_directive_keeps_the_simulated_prefix() -> None:
    """``say`` chooses the text, which keeps its simulated prefix."""
    assert answer(user("[[sim:say=All is well.]]")).text == "Simulated: All is well."


def test_earlier_messages_count_as_cached() -> None:
    """All messages except the last count as cached input."""
    reply = answer(user("x" * 40), {"role": "assistant", "content": "y" * 40}, user("z" * 8))
    assert (reply.input_tokens, reply.cached_tokens) == (22, 20)


MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={"content": st.none() | st.text() | st.lists(st.just({"type": "text", "text": "part"}), max_size=2)},
)


@given(st.lists(MESSAGE, max_size=5))
def test_answers_are_deterministic(messages: list[dict[str, Any]]) -> None:
    """Any conversation gets the same answer each time, marked as simulated and with correct token counts."""
    talk = read_conversation(messages)
    reply = reply_to({}, MODEL, talk, Directives())
    assert reply == reply_to({}, MODEL, read_conversation(messages), Directives())
    assert reply.text.startswith("Simulated answer from m")
    assert reply.output_tokens == count_tokens(reply.text)
    assert reply.cached_tokens <= reply.input_tokens


SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}
VERDICT = {"verdict": "Simulated verdict"}
TOLD = {"role": "system", "content": f"Be brief.\n\n{SCHEMA_BEGINS}{json.dumps(SCHEMA)}{SCHEMA_ENDS}"}


@pytest.mark.parametrize(
    ("messages", "response_format", "message"),
    [
        ((user("Judge."),), {"type": "json_schema", "json_schema": {"schema": SCHEMA}}, VERDICT),
        ((TOLD, user("Judge.")), {"type": "json_object"}, VERDICT),
        ((user('[[sim:json={"verdict": "guilty"}]]'),), {"type": "json_object"}, {"verdict": "guilty"}),
    ],
)  # fmt: skip
def test_json_output_follows_the_schema_or_directive(messages: Any, response_format: Any, message: Any) -> None:
    """The JSON follows the schema of the request, the schema in the system message, or the directive."""
    assert json.loads(answer(*messages, response_format=response_format).text) == message


def test_json_without_a_schema_is_marked_and_summarises() -> None:
    """Without a valid schema, the JSON is marked as simulated and summarises the prompt."""
    broken = {"role": "system", "content": f"{SCHEMA_BEGINS}{{{SCHEMA_ENDS}"}
    for messages in ((user("Judge."),), (broken, user("Judge."))):
        reply = json.loads(answer(*messages, response_format={"type": "json_object"}).text)
        assert reply["simulated"] is True
        assert 'beginning with "Judge."' in reply["answer"]


def test_reasoning_names_the_effort() -> None:
    """The reasoning names the effort, so that a test can check that it arrived."""
    deep = replace(MODEL, thinking="always")
    assert answer(user("Why?"), model=deep, reasoning_effort="max").reasoning.endswith("at effort max.")


def test_kimi_search_is_called_and_then_reported() -> None:
    """The tool call's arguments contain the search and its token cost. After they are sent back, the answer reports the
    search.
    """
    tools = [{"type": "builtin_function", "function": {"name": "$web_search"}}]
    ((name, arguments),) = answer(user("News?"), tools=tools).tool_calls
    assert name == "$web_search"
    assert json.loads(arguments)["usage"]["total_tokens"] > 0
    echo = {"role": "tool", "name": name, "content": arguments}
    reported = answer(user("News?"), {"role": "assistant", "content": ""}, echo, tools=tools)
    assert reported.text.endswith(" The web was searched 1 time.")


def test_glm_search_returns_pages_if_enabled() -> None:
    """The search returns the requested number of pages for the query, and no pages if they are not requested."""
    settings = {"enable": True, "search_result": True, "search_query": "moths", "count": 2}
    reply = answer(user("News?"), tools=[{"type": "web_search", "web_search": settings}])
    assert [page["title"] for page in reply.search_results] == [
        "Simulated page 1 on moths",
        "Simulated page 2 on moths",
    ]
    assert reply.text.endswith(" The web search found 2 pages, see [ref_1].")
    for off in ({"enable": False}, {"search_result": False}):
        tool = {"type": "web_search", "web_search": settings | off}
        assert answer(user("News?"), tools=[tool]).search_results == ()
