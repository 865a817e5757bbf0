"""Content blocks of servers and agents: text, data, files."""

from typing import Any

import pytest
from toold.protocol.tool_call import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink
from toold.sources.content_blocks import read_answer
from toold.tools import ToolOutput

TEXT = {"type": "text", "text": "hello"}
PICTURE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}


def test_text_blocks_become_text() -> None:
    """One line per block."""
    assert read_answer([TEXT, TEXT], None) == "hello\nhello"
    assert read_answer([], None) == ""


def test_structured_content_is_the_data() -> None:
    """With the text, if any."""
    assert read_answer([TEXT], {"a": 1}) == ToolOutput("hello", {"a": 1})
    assert read_answer([], {"a": 1}) == ToolOutput(None, {"a": 1})


@pytest.mark.parametrize(
    ("block", "text", "expected"),
    [
        (PICTURE, "[image, image/png, 3 bytes]", ImageContent("AAAA", "image/png")),
        ({"type": "audio", "mimeType": "a/b", "data": ""}, "[audio, a/b, 0 bytes]", AudioContent("", "a/b")),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a", "annotations": {"priority": 1}},
            "[a: file:///a]",
            ResourceLink("file:///a", "a", annotations={"priority": 1}),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}},
            "[resource: file:///a]",
            EmbeddedResource({"uri": "file:///a", "blob": "AAAA"}),
        ),
    ],
    ids=["image", "audio", "link", "resource"],
)
def test_other_content_is_passed_on_and_described(block: dict[str, Any], text: str, expected: ContentBlock) -> None:
    """As text and as MCP blocks, also with structured data."""
    assert read_answer([TEXT, block], None) == ToolOutput(f"hello\n{text}", blocks=(expected,))
    assert read_answer([TEXT, block], {"a": 1}) == ToolOutput(f"hello\n{text}", {"a": 1}, (expected,))


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({**PICTURE, "data": "!!!!"}, "[image, image/png, omitted: its data is not base64]"),
        ({**PICTURE, "data": "AAA"}, "[image, image/png, omitted: its data is not base64]"),
        ({**PICTURE, "data": "AAAA\n"}, "[image, image/png, omitted: its data is not base64]"),
        ({**PICTURE, "mimeType": "a/b\r\nX: y"}, "[image, omitted: its MIME type is invalid]"),
        ({**PICTURE, "mimeType": "png"}, "[image, omitted: its MIME type is invalid]"),
        ({**PICTURE, "mimeType": "a/" + "b" * 1000}, "[image, omitted: its MIME type is invalid]"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "é==="}},
            "[resource: file:///a, omitted: its data is not base64]",
        ),
    ],
    ids=["letters", "length", "lines", "a type with lines", "half a type", "a long type", "resource"],
)
def test_invalid_content_is_only_described(block: dict[str, Any], text: str) -> None:
    """Vendors reject a whole conversation for an invalid image."""
    assert read_answer([TEXT, block], None) == f"hello\n{text}"


def test_the_size_of_an_image_excludes_padding() -> None:
    """Base64 padding is not counted."""
    assert read_answer([{**PICTURE, "data": "aGk="}], None).text == "[image, image/png, 2 bytes]"  # type: ignore[union-attr]


def test_text_resources_and_unknown_content_become_text() -> None:
    """Also malformed blocks."""
    assert (
        read_answer([TEXT, {"type": "resource", "resource": {"uri": "file:///a", "text": "in"}}], None) == "hello\nin"
    )
    assert read_answer([{"type": "odd"}], None) == "[odd]"
    assert read_answer([{"type": "resource_link", "uri": 5}, {"type": "image"}], None) == "[resource: 5]\n[image]"
