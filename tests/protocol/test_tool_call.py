"""Results: their encoding, and the value that callers use."""

import pytest
from msgspec import UNSET
from toold.protocol.tool_call import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Metadata,
    ResourceLink,
    TextContent,
    Timings,
    ToolResult,
    decode_result,
    encode_result,
)

PICTURE = ImageContent("iVBORw==", "image/png")
BLOCKS: tuple[ContentBlock, ...] = (
    TextContent("a picture"),
    PICTURE,
    AudioContent("UklGRg==", "audio/wav"),
    EmbeddedResource({"uri": "file:///a", "mimeType": "text/plain", "text": "a"}),
    ResourceLink("https://example.org/b", "b", size=3),
)


def result(*outputs: ContentBlock, structured: object = UNSET) -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), outputs, structured)


def test_blocks_round_trip() -> None:
    """All kinds, in order."""
    assert decode_result(encode_result(result(*BLOCKS))).outputs == BLOCKS
    link = encode_result(result(BLOCKS[-1]))
    assert b'{"type":"resource_link","uri":"https://example.org/b","name":"b","size":3}' in link


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (result(TextContent("a"), TextContent("b")), "a\nb"),
        (result(TextContent("a"), structured=None), None),
        (result(TextContent("a"), PICTURE, structured=[1]), [1]),
        (
            result(TextContent("a"), PICTURE),
            {
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
                ]
            },
        ),
    ],
    ids=["words", "null", "data with an image", "a picture"],
)
def test_the_value_of_a_result(given: ToolResult, value: object) -> None:
    """The data; without data, the text, or all blocks if they are not only text."""
    assert given.value == value
    assert given.text.startswith("a")
