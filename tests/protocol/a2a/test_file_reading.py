"""Files in messages of A2A."""

import base64
from typing import Any

import msgspec
import pytest
from toold.protocol.a2a.a2a_error import CONTENT_TYPE, INVALID_PARAMS, A2AError
from toold.protocol.a2a.a2a_request import A2AMessage, read_send
from toold.protocol.a2a.a2a_version import send_params_of_0_3
from toold.protocol.a2a.file_reading import MAX_FILES, MAX_KEPT_FILE_CHARS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(*parts: dict[str, Any]) -> A2AMessage:
    return read_send({"message": {"messageId": "m", "role": "ROLE_USER", "parts": list(parts)}}).message


def _kept(message: A2AMessage) -> Any:
    return msgspec.json.decode(message.parts)


def test_files_keep_their_place_in_the_prompt() -> None:
    """Text files are in the prompt, images are named there and go to the model, and links are shown."""
    message = _read(
        {"text": "Compare:"},
        {"raw": _base64(b"one\ntwo"), "filename": "a.txt", "mediaType": "text/plain"},
        {"raw": _base64(PNG), "filename": "b.png"},
        {"url": "https://example.com/c.jpg"},
        {"url": "https://example.com/d.pdf", "media_type": "application/pdf", "filename": "d.pdf"},
    )
    assert message.prompt.split("\n\n") == [
        "Compare:",
        "[file a.txt]\none\ntwo\n[end of the file]",
        "[image b.png]",
        "[image: https://example.com/c.jpg]",
        "[file d.pdf (application/pdf): https://example.com/d.pdf]",
    ]
    assert message.images == (f"data:image/png;base64,{_base64(PNG)}", "https://example.com/c.jpg")
    assert message.has_files
    assert _kept(message)[1:3] == [
        {"raw": _base64(b"one\ntwo"), "mediaType": "text/plain", "filename": "a.txt"},
        {"raw": _base64(PNG), "filename": "b.png"},
    ]


def test_a_long_file_is_not_kept_in_the_history() -> None:
    """The history has its name and size, and the prompt all of it."""
    text = "x" * MAX_KEPT_FILE_CHARS
    message = _read({"raw": _base64(text.encode()), "filename": "long.txt"})
    assert _kept(message) == [{"text": f"[file long.txt: {len(text):,} bytes]"}]
    assert text in message.prompt


def test_files_of_0_3_are_read() -> None:
    """A part of the kind file has bytes or a URI."""
    files = [
        {"kind": "file", "file": {"bytes": _base64(PNG), "name": "b.png", "mimeType": "image/png"}},
        {"kind": "file", "file": {"uri": "http://example.com/d.csv"}},
    ]
    sent = {"message": {"messageId": "m", "role": "user", "parts": files}}
    message = read_send(send_params_of_0_3(sent)).message
    assert message.prompt == "[image b.png]\n\n[file: http://example.com/d.csv]"
    assert len(message.images) == 1


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ([{"raw": "not base64"}], INVALID_PARAMS, "parts[0].raw must be base64"),
        ([{"raw": ""}], INVALID_PARAMS, "parts[0].raw must be base64"),
        ([{"raw": _base64(b"%PDF-1.7\xff")}], CONTENT_TYPE, "neither text in UTF-8 nor an image"),
        ([{"raw": _base64(b"a\0b")}], CONTENT_TYPE, "neither text"),
        ([{"raw": _base64(b"text"), "mediaType": "application/x-other"}], CONTENT_TYPE, "of type application/x-other"),
        ([{"raw": _base64(PNG), "mediaType": "application/pdf"}], CONTENT_TYPE, "of type application/pdf"),
        ([{"url": "file:///etc/passwd"}], INVALID_PARAMS, "begins with https://"),
        ([{"url": f"https://a.example/{'x' * 2000}"}], INVALID_PARAMS, "up to 2000 characters"),
        ([{"url": "https://[", "mediaType": "image/png"}], INVALID_PARAMS, "parts[0].url"),
        ([{"url": "https://a.example/x", "mediaType": 1}], INVALID_PARAMS, "parts[0].mediaType"),
        ([{"url": "https://a.example/x"}] * (MAX_FILES + 1), INVALID_PARAMS, "more than 16 files"),
        ([{"text": "x", "url": "https://a.example/x"}], INVALID_PARAMS, "one of text, data, raw and url"),
    ],
)
def test_other_files_are_refused(parts: list[dict[str, Any]], kind: Any, words: str) -> None:
    """The error names the part and says what is accepted."""
    with pytest.raises(A2AError) as refused:
        _read(*parts)
    assert refused.value.kind == kind
    assert words in refused.value.message
