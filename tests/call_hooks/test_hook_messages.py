"""The questions to hooks and their answers."""

import json
from typing import Any

import msgspec
import pytest
from toold.call_hooks import hook_messages
from toold.call_hooks.hook_messages import (
    HookAnswerError,
    HookQuestion,
    answer_id,
    changed_result,
    encoded,
    hooked_result,
    read_answer,
)
from toold.protocol.error_codes import ToolError
from toold.protocol.tool_call import ImageContent, Metadata, TextContent, Timings, ToolResult

from .conftest import CALL

RESULT = ToolResult(
    Metadata(1.0, Timings()), (TextContent("hi"), ImageContent("AAAA", "image/png")), {"a": None}, meta={"k": 1}
)
FAILED = ToolResult(Metadata(1.0, Timings()), error=ToolError("NOT_FOUND", "No ann@x.example.", "no", False))


def test_a_question_has_what_is_passed_on_besides_the_arguments() -> None:
    """So that a rule about arguments is not avoided by it."""
    call = msgspec.structs.replace(CALL, meta={"x.test/y": 1})
    assert json.loads(encoded(HookQuestion("before", call, {})))["call"]["_meta"] == {"x.test/y": 1}


def test_a_question_has_the_call_its_arguments_and_its_result() -> None:
    """The result is in MCP's words; a value of null is not an absent one."""
    question = json.loads(encoded(HookQuestion("after", CALL, {"id": 7}, hooked_result(RESULT))))
    assert question == {
        "event": "after",
        "call": {
            "id": "c-1",
            "tool": "crm_get",
            "source": "crm",
            "principal": "token:ann",
            "transport": "mcp",
            "client": "editor",
            "toolset": "full",
            "read_only": True,
            "parent": None,
        },
        "arguments": {"id": 7},
        "result": {
            "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
            "structuredContent": {"a": None},
            "_meta": {"k": 1},
        },
    }
    assert "result" not in json.loads(encoded(HookQuestion("before", CALL, {})))
    error = json.loads(encoded(HookQuestion("after", CALL, {}, hooked_result(FAILED))))["result"]["error"]
    assert error["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("event", "answer", "problem"),
    [
        ("before", "hello", "is not JSON"),
        ("before", "[]", "is invalid"),
        ("before", '{"refused": "no"}', "is invalid.*refused"),
        ("before", '{"refuse": true}', "is invalid"),
        ("before", '{"result": {"content": []}}', "before a call, it can change arguments only"),
        ("after", '{"arguments": {}}', "after a call, it can change result only"),
        ("before", '{"refuse": "no", "arguments": {}}', "both refuse and a change"),
        ("before", '{"arguments": [1]}', "is invalid"),
        ("before", '{"arguments": {"a": ' + "[" * 100_000, "is not JSON"),
        ("before", '{"arguments": {"a": 1e999}}', "is invalid"),
    ],
)
def test_an_answer_that_is_wrong_is_not_taken_for_consent(event: Any, answer: str, problem: str) -> None:
    """A misspelled key would otherwise allow what its author wanted to refuse."""
    with pytest.raises(HookAnswerError, match=problem):
        read_answer(answer.encode(), event)


def test_answers() -> None:
    """An empty object allows; the id of an answer is found, and other lines have none."""
    assert read_answer(b'{"id": 3}', "before").refuse is msgspec.UNSET
    assert read_answer(b'{"refuse": "no"}', "after").refuse == "no"
    assert answer_id(b'{"id": 3, "refuse": "no"}\n') == 3
    assert [answer_id(line) for line in (b"starting\n", b"{}\n", b'{"id": "3"}\n', b"\xff\n")] == [None] * 4


def test_a_changed_result_replaces_all_of_it() -> None:
    """Data that the hook does not repeat is gone: it may be what it wanted to remove."""
    answer = read_answer(b'{"result": {"content": [{"type": "text", "text": "bye"}]}}', "after")
    assert answer.result is not msgspec.UNSET
    changed = changed_result(RESULT, answer.result)
    assert changed.outputs == (TextContent("bye"),)
    assert (changed.structured, changed.meta, changed.metadata) == (msgspec.UNSET, msgspec.UNSET, RESULT.metadata)


def test_an_error_stays_an_error() -> None:
    """Its message and details can change, its code and whether it had an effect cannot."""
    answer = read_answer(
        b'{"result": {"content": [], "error": {"code": "OK", "executed": "yes", "message": "No [email]."}}}', "after"
    )
    assert answer.result is not msgspec.UNSET
    error = changed_result(FAILED, answer.result).error
    assert error == ToolError("NOT_FOUND", "No [email].", "no", False)
    with pytest.raises(HookAnswerError, match="must have error if"):
        changed_result(RESULT, answer.result)
    success = read_answer(b'{"result": {"content": []}}', "after").result
    assert success is not msgspec.UNSET
    with pytest.raises(HookAnswerError, match="must have error if"):
        changed_result(FAILED, success)


@pytest.mark.parametrize("content", ['[{"type": "video"}]', '[{"type": "text"}]', '[{"text": "hi"}]'])
def test_invalid_content(content: str) -> None:
    """Content that is not MCP's is refused."""
    answer = read_answer(b'{"result": {"content": %s}}' % content.encode(), "after")
    assert answer.result is not msgspec.UNSET
    with pytest.raises(HookAnswerError, match="its result is invalid"):
        changed_result(RESULT, answer.result)


def test_the_length_of_a_question_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that is too long, or no JSON, is not asked."""
    monkeypatch.setattr(hook_messages, "MAX_QUESTION_BYTES", 1000)
    with pytest.raises(HookAnswerError, match="more than"):
        encoded(HookQuestion("before", CALL, {"text": "x" * 1000}))
    with pytest.raises(HookAnswerError, match="as JSON"):
        encoded(HookQuestion("before", CALL, {"value": object()}))
