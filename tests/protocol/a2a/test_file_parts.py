"""Files of answers, as parts of A2A."""

import base64
from typing import Any

from toold.protocol.a2a.a2a_task import artifact_of
from toold.protocol.a2a.named_results import MAX_NAMED, handles_in
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
)

BLOCKS: tuple[ContentBlock, ...] = (
    ImageContent("aW1n", "image/png"),
    AudioContent("c291bmQ=", "audio/wav"),
    EmbeddedResource({"uri": "file:///a/my%20notes.txt", "text": "noted", "mimeType": "text/markdown"}),
    EmbeddedResource({"uri": "x:", "blob": "AAE="}),
    ResourceLink("https://example.com/r.pdf", "r.pdf", mime_type="application/pdf"),
)
HANDLE = "0123456789ab-7"
FILES: list[dict[str, Any]] = [
    {"raw": "aW1n", "mediaType": "image/png"},
    {"raw": "c291bmQ=", "mediaType": "audio/wav"},
    {"raw": base64.b64encode(b"noted").decode(), "mediaType": "text/markdown", "filename": "my notes.txt"},
    {"raw": "AAE=", "mediaType": "application/octet-stream"},
    {"url": "https://example.com/r.pdf", "filename": "r.pdf", "mediaType": "application/pdf"},
]


def test_files_follow_the_answer() -> None:
    """Images, audio and resources are file parts after the text; an answer without text has only its files."""
    for answer, texts in (("see", [{"text": "see", "mediaType": "text/plain"}]), ("", [])):
        outputs = (TextContent(answer), *BLOCKS)
        result = ToolResult(Metadata(0.0, Timings()), outputs=outputs, structured={"answer": answer})
        assert artifact_of(result)["parts"] == [*texts, *FILES]


def test_handles_are_found_in_answers() -> None:
    """Those in a text or in data, each once, up to a limit; that of an answer that was too large is its own."""

    def found(structured: Any, *, spilled: bool | None = None) -> list[str]:
        return handles_in(ToolResult(Metadata(0.0, Timings(), spilled=spilled), structured=structured))

    assert found({"answer": f"{HANDLE}, {HANDLE}; 0123456789ab-1/file.t2.0. no: 0123456789ab, x{HANDLE}"}) == [
        HANDLE,
        "0123456789ab-1/file.t2.0",
    ]
    assert found({"answer": {"report": HANDLE}}) == [HANDLE]
    assert found({"handle": "any", "answer": HANDLE}, spilled=True) == ["any"]
    many = " ".join(f"0123456789ab-{number}" for number in range(MAX_NAMED + 1))
    assert len(found({"answer": many})) == MAX_NAMED
