"""Reading questions: bounds, and what a hostile source may not show."""

from typing import Any

import pytest
from toold.protocol.questions.client_question import (
    ELICIT,
    LIST_ROOTS,
    MAX_MESSAGE_CHARS,
    SAMPLE,
    SOURCE_KEY,
    QuestionRefusedError,
    kinds_declared,
    read_question,
)

EMPTY = {"type": "object", "properties": {}}
PROMPT: dict[str, Any] = {"messages": [{"role": "user", "content": {}}], "maxTokens": 1}


@pytest.mark.parametrize(
    ("capabilities", "kinds"),
    [
        (None, ()),
        ({"elicitation": {}}, ("form",)),
        ({"elicitation": {"url": {}}}, ("url",)),
        (
            {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}},
            ("form", "url", "sampling", "sampling_tools"),
        ),
        ({"roots": {"listChanged": True}, "sampling": {}, "elicitation": True}, ("sampling", "roots")),
    ],
)
def test_kinds_follow_the_capabilities(capabilities: Any, kinds: tuple[str, ...]) -> None:
    """Only what a client declares counts."""
    assert kinds_declared(capabilities) == kinds


def test_a_text_names_its_source_and_has_no_control_characters() -> None:
    """Escape sequences and characters that reverse text become spaces; a long text is cut."""
    message = "Your \x1b[2Jtoken\u202e, please" + "!" * MAX_MESSAGE_CHARS
    question = read_question(ELICIT, {"message": message, "requestedSchema": EMPTY}, "shop")
    text = question.params["message"]
    assert text.startswith("shop asks: Your  [2Jtoken , please!")
    assert len(text) == len("shop asks: ") + MAX_MESSAGE_CHARS
    assert question.params["_meta"] == {SOURCE_KEY: "shop"}


def test_a_url_is_asked_with_its_host() -> None:
    """The text says where the page is."""
    params = {"mode": "url", "message": "Pay", "url": "https://pay.example/x", "elicitationId": "e"}
    question = read_question(ELICIT, params, "shop")
    assert question.kind == "url"
    assert question.params["message"] == "shop asks you to open a page of pay.example: Pay"


@pytest.mark.parametrize(
    ("method", "params", "reason"),
    [
        ("tools/call", {}, "does not know this kind"),
        (ELICIT, {"message": 7, "requestedSchema": EMPTY}, "message must be a string"),
        (ELICIT, {"message": "", "mode": "url", "url": "javascript:alert(1)"}, "must begin with https"),
        (ELICIT, {"message": "", "mode": "url", "url": "https://bank.example@evil.example/"}, "user name"),
        (ELICIT, {"message": "", "mode": "url", "url": "https://a.example/\n"}, "not allowed"),
        (SAMPLE, {"messages": [], "maxTokens": 1}, "a list of 1 to 200"),
        (
            SAMPLE,
            {"messages": [{"role": "user", "content": {"text": "x" * 300_000}}], "maxTokens": 1},
            "more than 262,144",
        ),
        (SAMPLE, {"messages": [{"role": "user", "content": {}}], "maxTokens": 0}, "above 0"),
        (SAMPLE, {"messages": [{"role": ["user"], "content": {}}], "maxTokens": 1}, "the role user or assistant"),
        (SAMPLE, {**PROMPT, "systemPrompt": {}}, "systemPrompt must be a string"),
        (SAMPLE, {**PROMPT, "temperature": "hot"}, "temperature must be a number"),
    ],
)
def test_invalid_questions_are_refused(method: str, params: Any, reason: str) -> None:
    """With the reason."""
    with pytest.raises(QuestionRefusedError, match=reason):
        read_question(method, params, "shop")


def test_a_completion_gets_no_context_of_other_servers() -> None:
    """``includeContext`` is dropped, and roots have no parameters."""
    messages = [{"role": "user", "content": {"type": "text", "text": "Hi"}}]
    params = {"messages": messages, "maxTokens": 5, "includeContext": "allServers"}
    assert set(read_question(SAMPLE, params).params) == {"messages", "maxTokens"}
    assert read_question(LIST_ROOTS, {"any": 1}).params == {}
