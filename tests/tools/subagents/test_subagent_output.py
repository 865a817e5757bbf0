"""The output of each kind of program is read: its answer, its error, its model and its tokens."""

import json
from collections.abc import Sequence

import pytest
from toold.tools.subagents.subagent_output import (
    MAX_ANSWER_CHARS,
    SubagentAnswer,
    SubagentOutputError,
    read_output,
    shortened,
)
from toold.tools.subagents.subagent_settings import OutputForm

CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"type": "reasoning", "text": "Hm."}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "I look."}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "Found it."}},
    {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 2}},
]
GEMINI = {"response": "Hello.", "stats": {"models": {"gemini-3-pro": {"tokens": {"total": 7}}}}}
RESULT = {"type": "result", "is_error": False, "result": " Yes. ", "total_cost_usd": 0.5, "usage": {"output_tokens": 1}}


def lines(events: Sequence[object]) -> str:
    return "\n".join(map(json.dumps, events))


@pytest.mark.parametrize(
    ("form", "stdout", "answer"),
    [
        ("text", "\x1b[1mYes\x1b[0m, \x1b]0;title\x07it is.\n", SubagentAnswer("Yes, it is.")),
        ("claude", json.dumps(RESULT), SubagentAnswer("Yes.", usage={"output_tokens": 1, "total_cost_usd": 0.5})),
        ("claude", json.dumps([{"type": "system"}, {"type": "result", "result": "A"}]), SubagentAnswer("A")),
        ("claude", json.dumps({"type": "result", "is_error": True, "subtype": "error_max_turns"}),
         SubagentAnswer("error_max_turns", failed=True)),
        ("gemini", f"Loaded credentials.\n{json.dumps(GEMINI)}",
         SubagentAnswer("Hello.", model="gemini-3-pro", usage={"total": 7})),
        ("gemini", '{"error": {"type": "Quota", "message": "Later."}}', SubagentAnswer("Later.", failed=True)),
        ("codex", lines(CODEX), SubagentAnswer("Found it.", usage={"input_tokens": 9, "output_tokens": 2})),
        ("codex", lines([{"type": "turn.failed", "error": {"message": "No."}}]), SubagentAnswer("No.", failed=True)),
        ("gemini", '{"response": "half \\ud83d", "stats": {"models": []}}', SubagentAnswer("half ?")),
    ],
)  # fmt: skip
def test_known_forms_are_read(form: OutputForm, stdout: str, answer: SubagentAnswer) -> None:
    """The answer is the program's last message, or its error; warnings before JSON and terminal codes are left out."""
    assert read_output(stdout, form) == answer


@pytest.mark.parametrize(
    ("form", "stdout", "words"),
    [
        ("text", " \n", "no answer"),
        ("claude", "{}", '"type": "result"'),
        ("claude", "[1, {", "not JSON"),
        ("gemini", "Please log in.", "no answer"),
        ("codex", '{"type": "turn.completed"', "a line is not JSON"),
        ("codex", '[1]\n{"item": 1}', "no answer"),
    ],
)
def test_other_output_is_an_error(form: OutputForm, stdout: str, words: str) -> None:
    """Output without an answer, or in another form, is refused with the reason."""
    with pytest.raises(SubagentOutputError, match=words):
        read_output(stdout, form)


def test_long_answers_are_cut_off() -> None:
    """An answer has at most ``MAX_ANSWER_CHARS`` characters and says how many it had."""
    assert shortened("x" * MAX_ANSWER_CHARS) == ("x" * MAX_ANSWER_CHARS, False)
    text, cut = shortened("x" * (MAX_ANSWER_CHARS + 1))
    assert cut
    assert text == "x" * MAX_ANSWER_CHARS + "\n\n(Cut off: 200,001 characters.)"
