"""Files at a vendor: what it takes, and how it tells of them. The requests themselves are in test_contract.py."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import FileList, FileRules, RemoteFile, VendorFiles, extracted_text
from toold.providers.completion_parsing import NotUnderstoodError
from toold.providers.vendor_files import GLM_FILES, KIMI_FILES, check_upload, read_deletion, read_file, read_files
from toold.providers.vendor_transport import ApiRequest

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("rules", "name", "size", "purpose", "field", "words"),
    [
        (KIMI_FILES, "a.pdf", 1, "retrieval", "purpose", "known: file-extract, image, video, batch"),
        (KIMI_FILES, "a.pdf", 100 * MB + 1, "file-extract", "file", "accepts at most 100 MB for file-extract"),
        (KIMI_FILES, "a.json", 1, "batch", "file", "files of the types .jsonl, not 'a.json'"),
        (KIMI_FILES, "a.pdf", 0, "file-extract", "file", "'a.pdf' is empty"),
        (GLM_FILES, "a.pdf", 1, "file-extract", "purpose", "known: batch, code-interpreter, agent"),
        (GLM_FILES, "a.md", 1, "agent", "file", ".csv, .doc, .docx"),
        (GLM_FILES, "a.pdf", 20 * MB + 1, "agent", "file", "accepts at most 20 MB"),
        (GLM_FILES, "a.PNG", 5 * MB + 1, "agent", "file", "accepts at most 5 MB"),
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


class Listing:
    """An exchange that lists two files, whatever is asked; notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[ApiRequest] = []

    async def ask(self, request: ApiRequest, read: Any, *, timeout_s: float) -> Any:
        self.asked.append(request)
        return read({"data": [{"id": "a", "purpose": "batch"}, {"id": "b", "purpose": "agent"}]})


@pytest.mark.parametrize(("rules", "query"), [(KIMI_FILES, {}), (GLM_FILES, {"purpose": "batch"})])
async def test_files_are_listed_by_purpose(rules: FileRules, query: dict[str, str]) -> None:
    """GLM is asked for the purpose; of Kimi, which lists all, the others are left out here."""
    exchange: Any = Listing()
    files = VendorFiles(exchange, rules)
    assert [file.id for file in (await files.list(timeout_s=1, purpose="batch")).files] == ["a"]
    assert [file.id for file in (await files.list(timeout_s=1)).files] == ["a", "b"]
    assert [request.query for request in exchange.asked] == [query, {}]


async def test_what_a_vendor_cannot_tell_is_refused() -> None:
    """Kimi has no pages, GLM tells of no single file, and an id is never empty, endless or a way elsewhere."""
    exchange: Any = Listing()
    with pytest.raises(InvalidArgumentsError, match="lists all files at once"):
        await VendorFiles(exchange, KIMI_FILES).list(timeout_s=1, after="a")
    with pytest.raises(InvalidArgumentsError, match="does not report on single files"):
        await VendorFiles(exchange, GLM_FILES).info("a", timeout_s=1)
    for file_id in ("", ".", ".."):
        with pytest.raises(InvalidArgumentsError, match="id is empty"):
            await VendorFiles(exchange, KIMI_FILES).delete(file_id, timeout_s=1)
    with pytest.raises(InvalidArgumentsError, match="id is too long"):
        await VendorFiles(exchange, KIMI_FILES).content("f" * 513, timeout_s=1)
    assert exchange.asked == []
    with pytest.raises(NotUnderstoodError):
        await VendorFiles(exchange, KIMI_FILES).delete("../models?x=1", timeout_s=1)
    assert exchange.asked[0].path == "/files/..%2Fmodels%3Fx%3D1"
