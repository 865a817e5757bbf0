"""Files at a vendor: what it takes, and how it tells of them. The requests themselves are in test_contract.py."""

from typing import Any

import pytest
from toold.protocol.errors import InvalidArgumentsError
from toold.providers import FileList, RemoteFile, extracted_text
from toold.providers.answer import NotUnderstoodError
from toold.providers.files import GLM_FILES, KIMI_FILES, FileRules, check_upload, read_deletion, read_file, read_files

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("rules", "name", "size", "purpose", "field", "words"),
    [
        (KIMI_FILES, "a.pdf", 1, "retrieval", "purpose", "there are file-extract, image, video, batch"),
        (KIMI_FILES, "a.pdf", 100 * MB + 1, "file-extract", "file", "takes 100 MB at most for file-extract"),
        (KIMI_FILES, "a.json", 1, "batch", "file", "files of the types .jsonl, not 'a.json'"),
        (KIMI_FILES, "a.pdf", 0, "file-extract", "file", "'a.pdf' is empty"),
        (GLM_FILES, "a.pdf", 1, "file-extract", "purpose", "there are batch, code-interpreter, agent"),
        (GLM_FILES, "a.md", 1, "agent", "file", ".csv, .doc, .docx"),
        (GLM_FILES, "a.pdf", 20 * MB + 1, "agent", "file", "takes 20 MB at most"),
        (GLM_FILES, "a.PNG", 5 * MB + 1, "agent", "file", "takes 5 MB at most"),
    ],
)
def test_what_a_vendor_does_not_take_is_refused(
    rules: FileRules, name: str, size: int, purpose: str, field: str, words: str
) -> None:
    """By purpose, type and size, before a byte is sent; the error says what it takes."""
    with pytest.raises(InvalidArgumentsError) as caught:
        check_upload(rules, name, size, purpose)
    assert words in caught.value.message
    assert list((caught.value.details or {})["fields"]) == [field]


@pytest.mark.parametrize(
    ("rules", "name", "size", "purpose"),
    [
        (KIMI_FILES, "a.rs", 100 * MB, "file-extract"),
        (GLM_FILES, "a.JSONL", 100 * MB, "batch"),
        (GLM_FILES, "a.png", 5 * MB, "agent"),
        (GLM_FILES, "a.wav", 1000 * MB, "voice-clone-input"),
    ],
)
def test_what_a_vendor_takes_passes(rules: FileRules, name: str, size: int, purpose: str) -> None:
    """Bounds included; where the vendor names no bound, or its list of types is open, it decides."""
    check_upload(rules, name, size, purpose)


def test_a_file_is_read_as_far_as_it_is_told() -> None:
    """GLM says less than Kimi; what is missing is empty."""
    assert read_file({"id": "f", "bytes": 3, "created_at": 7, "filename": "a.txt", "purpose": "batch"}) == RemoteFile(
        "f", "a.txt", 3, "batch", 7
    )
    assert read_file({"id": "f", "status": "error", "status_details": "no text"}).status_details == "no text"
    assert read_files({"data": [{"id": "f"}], "has_more": True}) == FileList(
        (RemoteFile("f", "", 0, "", 0),), more=True
    )


@pytest.mark.parametrize("document", [None, [], {}, {"id": 1}, {"data": {}}, {"data": [1]}])
def test_what_is_no_file_is_not_understood(document: Any) -> None:
    """Neither one nor a list."""
    with pytest.raises(NotUnderstoodError):
        read_file(document)
    with pytest.raises(NotUnderstoodError):
        read_files(document)


@pytest.mark.parametrize("document", [None, {}, {"deleted": False}, {"deleted": "true"}])
def test_a_file_that_is_not_said_to_be_deleted_is_not(document: Any) -> None:
    """Nobody is told that it is gone where the vendor does not say so."""
    with pytest.raises(NotUnderstoodError):
        read_deletion(document)
    read_deletion({"deleted": True})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"plain words", "plain words"),
        ('{"content": "grüß", "file_type": "text/plain"}'.encode(), "grüß"),
        (b'{"content": "my own file"}', '{"content": "my own file"}'),
        (b"[1]", "[1]"),
        (b"\xff", "\ufffd"),
    ],
)
def test_extracted_text_is_taken_out_of_its_wrapping(content: bytes, text: str) -> None:
    """Kimi's wrapping is undone; a JSON file that only looks a little like it stays itself."""
    assert extracted_text(content) == text
