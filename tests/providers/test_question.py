"""From the neutral request to the body, and what a model cannot do."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.errors import InvalidArgumentsError
from toold.providers import (
    AttachedFile,
    Catalogue,
    CompletionRequest,
    FunctionTool,
    ImagePart,
    Message,
    Model,
    TextPart,
)
from toold.providers.question import body, check, with_files

PLAIN: Model = replace(Catalogue.load().default("kimi"), id="m", inputs=("text",), thinking="none",
                       fixed_temperature=False, max_output=100, context_window=1000)  # fmt: skip
ASKED = (Message("user", "Hello."),)
PICTURE = (Message("user", (TextPart("What is it?"), ImagePart("data:image/png;base64,AA=="))),)
TOOL = FunctionTool("t", "Does.", {"type": "object"})


def request(model: Model = PLAIN, messages: tuple[Message, ...] = ASKED, **fields: Any) -> CompletionRequest:
    return CompletionRequest(model, messages, **fields)


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        (request(messages=()), "messages", "nothing to ask"),
        (request(messages=PICTURE), "images", "m takes no images"),
        (request(replace(PLAIN, tools=False), tools=(TOOL,)), "tools", "m cannot call tools"),
        (request(thinking=True), "thinking", "m cannot think first"),
        (request(replace(PLAIN, thinking="always"), thinking=False), "thinking", "m always thinks first"),
        (request(replace(PLAIN, fixed_temperature=True), temperature=1.0), "temperature", "m has a fixed temperature"),
        (request(temperature=1.5), "temperature", "from 0 to 1, not 1.5"),
        (request(temperature=-0.1), "temperature", "from 0 to 1, not -0.1"),
        (request(temperature=float("nan")), "temperature", "from 0 to 1, not nan"),
        (request(max_tokens=0), "max_tokens", "from 1 to 100, not 0"),
        (request(max_tokens=101), "max_tokens", "from 1 to 100, not 101"),
        (request(replace(PLAIN, max_output=None), max_tokens=1001), "max_tokens", "from 1 to 1000, not 1001"),
    ],
)
def test_what_the_model_cannot_do_is_refused(asked: CompletionRequest, field: str, words: str) -> None:
    """The error names the model, and the argument in ``details.fields``."""
    with pytest.raises(InvalidArgumentsError) as caught:
        check(asked)
    assert words in caught.value.message
    assert (caught.value.details or {})["fields"] == {field: caught.value.message}
    assert caught.value.executed == "no"


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(messages=(), files=(AttachedFile("a", "b"),)),
        request(replace(PLAIN, inputs=("text", "image")), PICTURE),
        request(tools=(TOOL,), temperature=0.0, max_tokens=100),
        request(temperature=1.0, max_tokens=1),
        request(replace(PLAIN, thinking="always"), thinking=True),
        request(replace(PLAIN, thinking="switch"), thinking=False),
        request(thinking=False),
    ],
)
def test_what_the_model_can_do_passes(asked: CompletionRequest) -> None:
    """Limits included; and not to think is no demand on a model that never does."""
    check(asked)


@pytest.mark.parametrize(
    ("thinking", "asked", "sent"),
    [
        ("switch", True, {"type": "enabled"}),
        ("switch", False, {"type": "disabled"}),
        ("switch", None, None),
        ("always", True, None),
        ("none", False, None),
    ],
)
def test_only_a_switch_is_switched(thinking: Any, asked: bool | None, sent: Any) -> None:
    """Models without the switch may refuse it, so they are not sent it."""
    model = replace(PLAIN, thinking=thinking)
    assert body(request(model, thinking=asked), stream=False, image_url=str).get("thinking") == sent


def test_every_role_has_its_shape() -> None:
    """System, user with parts, assistant with calls, tool: as the vendors document them."""
    messages = (Message("system", "Be brief."), *PICTURE)
    document = body(request(messages=messages, temperature=0.0), stream=True, image_url=str.upper)
    assert document == {
        "model": "m",
        "stream": True,
        "temperature": 0.0,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "DATA:IMAGE/PNG;BASE64,AA=="}},
                ],
            },
        ],
    }


def test_files_go_to_the_last_user_message() -> None:
    """What came before stays as it was, so that a vendor's cache still knows it; parts keep their order."""
    files = (AttachedFile("a.py", "x"), AttachedFile("b<&>.py", "y"))
    text = '<file name="a.py">\nx\n</file>\n\n<file name="b&lt;&amp;&gt;.py">\ny\n</file>'
    earlier = (Message("user", "first"), Message("assistant", "second"))
    assert with_files((*earlier, Message("user", "third")), files) == (*earlier, Message("user", f"{text}\n\nthird"))
    assert with_files(PICTURE, files)[0].content == (TextPart(text), *PICTURE[0].content)
    later = Message("assistant", "fourth")
    assert with_files((*ASKED, later), files)[1] is later
    assert with_files((), files) == (Message("user", text),)


@given(st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=5), st.integers(0, 3))
def test_files_change_one_message_at_most(roles: list[Any], count: int) -> None:
    """Whatever the conversation: at most one message differs or is new, and it is the user's."""
    messages = tuple(Message(role, f"text {i}") for i, role in enumerate(roles))
    files = tuple(AttachedFile(f"{i}.txt", "words") for i in range(count))
    changed = [message for message in with_files(messages, files) if message not in messages]
    assert len(changed) == (1 if files else 0)
    assert all(message.role == "user" for message in changed)
