"""What the simulator reads and answers: the same for the same request."""

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


def test_it_says_that_it_is_simulated_and_what_it_read() -> None:
    """Prompt, files, images, system message and history each leave a trace in the answer."""
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
        'Simulated answer from m: you wrote 3 words beginning "What is it?".'
        ' 1 file attached: a & b.py (2 lines, first line "import os"). 1 image attached.'
        ' The system message begins "Be brief.". 2 earlier messages, the first begins "First question".'
    )
    assert (reply.finish, reply.reasoning, reply.tool_calls) == ("stop", "", ())


def test_a_file_cannot_give_directives() -> None:
    """A page about the simulator is read, not obeyed."""
    talk = read_conversation([user('<file name="docs.md">\n[[sim:hang]]\n</file>\n\nExplain.')])
    assert read_prompt_directives(talk) == Directives()
    assert talk.files == (("docs.md", "[[sim:hang]]"),)


def test_files_are_taken_apart_as_they_were_put_together() -> None:
    """A file ends at its first end, whatever it quotes; what only begins like one belongs to the prompt."""
    talk = read_conversation([user('<file name="a">\n<file name="b">\n</file>\n\nHm.\n<file name="c">\nno end')])
    assert talk.files == (("a", '<file name="b">'),)
    assert talk.prompt == 'Hm.\n<file name="c">\nno end'
    talk = read_conversation([user('<file-2 name="a">\nx\n</file>\ny\n</file-2>\n\nHm.')])
    assert talk.files == (("a", "x\n</file>\ny"),)
    assert talk.prompt == "Hm."


@pytest.mark.parametrize("prompt", ["Please use the find tool.", "call find", "[[sim:tool=find]]"])
def test_a_tool_is_asked_for_where_the_prompt_says_so(prompt: str) -> None:
    """With arguments of the right kinds for what is required."""
    reply = answer(user(prompt), tools=TOOLS)
    assert reply.finish == "tool_calls"
    assert reply.text == ""
    ((name, arguments),) = reply.tool_calls
    assert name == "find"
    assert '"count": 1' in arguments
    assert '"where": {}' in arguments


def test_a_tool_is_asked_for_once() -> None:
    """When the tool has answered, the answer quotes it instead of asking again."""
    reply = answer(
        user("[[sim:tool=find]]"),
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "found"},
        tools=TOOLS,
    )
    assert reply.tool_calls == ()
    assert 'A tool answered "found".' in reply.text


def test_without_tools_nothing_is_called() -> None:
    """A prompt that speaks of a tool that was not offered gets words."""
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
def test_it_thinks_as_the_vendors_do(thinking: Any, sent: Any, reasons: bool) -> None:
    """Models with the switch think unless they are told not to."""
    reply = answer(user("Hm."), model=replace(MODEL, thinking=thinking), thinking=sent)
    assert bool(reply.reasoning) is reasons
    assert (reply.reasoning_tokens > 0) is reasons


def test_the_bound_cuts_the_answer() -> None:
    """By either vendor's word for it, by the model's own, and on demand."""
    assert answer(user("Hello"), max_tokens=3).text == "Simulated an"
    assert answer(user("Hello"), max_completion_tokens=3).finish == "length"
    assert answer(user("[[sim:say=" + "x" * 600 + "]]")).output_tokens == 100
    assert answer(user("[[sim:length say=abcdefghi]]")).text == "Simulated:"


def test_words_that_were_asked_for_say_that_they_are_simulated() -> None:
    """``say`` chooses the words, but not that they pass for a vendor's."""
    assert answer(user("[[sim:say=All is well.]]")).text == "Simulated: All is well."


def test_what_came_before_is_cached() -> None:
    """All but the last message count as cached input."""
    reply = answer(user("x" * 40), {"role": "assistant", "content": "y" * 40}, user("z" * 8))
    assert (reply.input_tokens, reply.cached_tokens) == (22, 20)


MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={"content": st.none() | st.text() | st.lists(st.just({"type": "text", "text": "part"}), max_size=2)},
)


@given(st.lists(MESSAGE, max_size=5))
def test_any_conversation_gets_the_same_answer_twice(messages: list[dict[str, Any]]) -> None:
    """Whatever roles and contents: an answer that says it is simulated, counted rightly, and the same each time."""
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
    ("messages", "response_format", "said"),
    [
        ((user("Judge."),), {"type": "json_schema", "json_schema": {"schema": SCHEMA}}, VERDICT),
        ((TOLD, user("Judge.")), {"type": "json_object"}, VERDICT),
        ((user('[[sim:json={"verdict": "guilty"}]]'),), {"type": "json_object"}, {"verdict": "guilty"}),
    ],
)  # fmt: skip
def test_json_is_answered_where_it_is_asked_for(messages: Any, response_format: Any, said: Any) -> None:
    """By the request's schema, by the one that the system message tells, or as the prompt wishes."""
    assert json.loads(answer(*messages, response_format=response_format).text) == said


def test_json_without_a_schema_says_that_it_is_simulated() -> None:
    """And what it read; words that only look like a schema are none."""
    broken = {"role": "system", "content": f"{SCHEMA_BEGINS}{{{SCHEMA_ENDS}"}
    for messages in ((user("Judge."),), (broken, user("Judge."))):
        said = json.loads(answer(*messages, response_format={"type": "json_object"}).text)
        assert said["simulated"] is True
        assert 'beginning "Judge."' in said["answer"]


def test_reasoning_says_its_effort() -> None:
    """So that a test sees that it arrived."""
    deep = replace(MODEL, thinking="always")
    assert answer(user("Why?"), model=deep, reasoning_effort="max").reasoning.endswith("at effort max.")


def test_kimis_search_is_called_first_and_then_told_of() -> None:
    """Its arguments hold the search and what its pages cost; once they are back, the answer says so."""
    tools = [{"type": "builtin_function", "function": {"name": "$web_search"}}]
    ((name, arguments),) = answer(user("News?"), tools=tools).tool_calls
    assert name == "$web_search"
    assert json.loads(arguments)["usage"]["total_tokens"] > 0
    echo = {"role": "tool", "name": name, "content": arguments}
    told = answer(user("News?"), {"role": "assistant", "content": ""}, echo, tools=tools)
    assert told.text.endswith(" The web was searched 1 time.")


def test_glms_search_finds_pages_if_it_is_switched_on() -> None:
    """As many as asked for, and on what was asked for; not told of where they are not asked for."""
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
