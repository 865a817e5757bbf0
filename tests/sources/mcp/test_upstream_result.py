"""What a server's tool answered, as text and data; and its own failures."""

from typing import Any

import pytest
from toold.protocol.tool_call import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink
from toold.sources.mcp.upstream_result import failure, read_answer
from toold.tools import Answer

TEXT = {"type": "text", "text": "hello"}
PICTURE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}


def test_text_alone_is_text() -> None:
    """Blocks are lines."""
    assert read_answer([TEXT, TEXT], None) == "hello\nhello"
    assert read_answer([], None) == ""


def test_structured_content_is_the_data() -> None:
    """With the text that came along, or its own."""
    assert read_answer([TEXT], {"a": 1}) == Answer("hello", {"a": 1})
    assert read_answer([], {"a": 1}) == Answer(None, {"a": 1})


@pytest.mark.parametrize(
    ("block", "words", "kept"),
    [
        (PICTURE, "[image, image/png, 3 bytes]", ImageContent("AAAA", "image/png")),
        ({"type": "audio", "mimeType": "a/b", "data": ""}, "[audio, a/b, 0 bytes]", AudioContent("", "a/b")),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a", "annotations": {"priority": 1}},
            "[a: file:///a]",
            ResourceLink("file:///a", "a"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}},
            "[resource: file:///a]",
            EmbeddedResource({"uri": "file:///a", "blob": "AAAA"}),
        ),
    ],
    ids=["image", "audio", "link", "resource"],
)
def test_other_content_is_told_and_kept(block: dict[str, Any], words: str, kept: ContentBlock) -> None:
    """In words, and as MCP has it, beside data too."""
    assert read_answer([TEXT, block], None) == Answer(f"hello\n{words}", blocks=(kept,))
    assert read_answer([TEXT, block], {"a": 1}) == Answer(f"hello\n{words}", {"a": 1}, (kept,))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({**PICTURE, "data": "!!!!"}, "[image, image/png, left out: its data is no base64]"),
        ({**PICTURE, "data": "AAA"}, "[image, image/png, left out: its data is no base64]"),
        ({**PICTURE, "data": "AAAA\n"}, "[image, image/png, left out: its data is no base64]"),
        ({**PICTURE, "mimeType": "a/b\r\nX: y"}, "[image, left out: its type is none]"),
        ({**PICTURE, "mimeType": "png"}, "[image, left out: its type is none]"),
        ({**PICTURE, "mimeType": "a/" + "b" * 1000}, "[image, left out: its type is none]"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "é==="}},
            "[resource: file:///a, left out: its data is no base64]",
        ),
    ],
    ids=["letters", "length", "lines", "a type with lines", "half a type", "a long type", "resource"],
)
def test_what_is_not_what_it_says_is_told_alone(block: dict[str, Any], words: str) -> None:
    """A model's vendor refuses a whole conversation for a picture that is none."""
    assert read_answer([TEXT, block], None) == f"hello\n{words}"


def test_a_picture_has_the_bytes_that_it_has() -> None:
    """What fills the base64 up is none of them."""
    assert read_answer([{**PICTURE, "data": "aGk="}], None).text == "[image, image/png, 2 bytes]"  # type: ignore[union-attr]


def test_what_words_say_whole_is_text() -> None:
    """A resource that is text, and what nobody knows or MCP does not have so."""
    assert (
        read_answer([TEXT, {"type": "resource", "resource": {"uri": "file:///a", "text": "in"}}], None) == "hello\nin"
    )
    assert read_answer([{"type": "odd"}], None) == "[odd]"
    assert read_answer([{"type": "resource_link", "uri": 5}, {"type": "image"}], None) == "[resource: 5]\n[image]"


def test_a_failure_has_the_tools_words() -> None:
    """And its small data."""
    error = failure("s", [TEXT], {"why": "paper"})
    assert (error.code, error.message, error.retryable) == ("TOOL_EXECUTION_ERROR", "s: hello.", False)
    assert error.details == {"answer": {"why": "paper"}}
    assert failure("s", [], None).message == "s: the tool failed, and did not say why."


def test_a_failure_that_says_its_code_is_taken_at_its_word() -> None:
    """As the daemon's own answers over MCP have it; a code that is none is no code."""
    said = {"code": "RATE_LIMITED", "message": "slowly", "retryable": True, "retry_after_ms": 500}
    error = failure("s", [TEXT], said)
    assert (error.code, error.retryable, error.executed, error.retry_after_ms) == ("RATE_LIMITED", True, "maybe", 500)
    assert failure("s", [TEXT], said | {"executed": "no"}).executed == "no"
    assert not failure("s", [TEXT], said | {"retryable": False}).retryable
    assert failure("s", [TEXT], said | {"code": "ODD"}).code == "TOOL_EXECUTION_ERROR"
    assert failure("s", [TEXT], said | {"code": ["ODD"]}).code == "TOOL_EXECUTION_ERROR"
