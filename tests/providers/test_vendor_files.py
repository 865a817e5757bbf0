"""Files at a vendor: upload rules and parsing. test_contract.py tests the requests."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import FileList, FileRules, RemoteFile, VendorFiles, extracted_text
from toold.providers.response_values import InvalidResponseError
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
def test_unsupported_uploads_are_refused(
    rules: FileRules, name: str, size: int, purpose: str, field: str, words: str
) -> None:
    """Purpose, type and size are checked before the upload. The error says what the vendor accepts."""
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
def test_supported_uploads_pass(rules: FileRules, name: str, size: int, purpose: str) -> None:
    """Uploads at the limits pass. The vendor decides if it documents no limit or has an open list of types."""
    check_upload(rules, name, size, purpose)


def test_missing_file_fields_are_empty() -> None:
    """GLM returns fewer fields than Kimi. Missing fields are empty."""
    assert read_file({"id": "f", "bytes": 3, "created_at": 7, "filename": "a.txt", "purpose": "batch"}) == RemoteFile(
        "f", "a.txt", 3, "batch", 7
    )
    assert read_file({"id": "f", "status": "error", "status_details": "no text"}).status_details == "no text"
    assert read_files({"data": [{"id": "f"}], "has_more": True}) == FileList(
        (RemoteFile("f", "", 0, "", 0),), more=True
    )


@pytest.mark.parametrize("document", [None, [], {}, {"id": 1}, {"data": {}}, {"data": [1]}])
def test_invalid_file_documents_are_refused(document: Any) -> None:
    """An invalid document is neither a file nor a list of files."""
    with pytest.raises(InvalidResponseError):
        read_file(document)
    with pytest.raises(InvalidResponseError):
        read_files(document)


@pytest.mark.parametrize("document", [None, {}, {"deleted": False}, {"deleted": "true"}])
def test_unconfirmed_deletion_is_an_error(document: Any) -> None:
    """A deletion that the vendor does not confirm raises an error."""
    with pytest.raises(InvalidResponseError):
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
def test_extracted_text_is_unwrapped(content: bytes, text: str) -> None:
    """Kimi's JSON wrapper is removed. A JSON file that only resembles the wrapper stays unchanged."""
    assert extracted_text(content) == text


class Listing:
    """An exchange that lists two files for every request, and records the requests."""

    def __init__(self) -> None:
        self.requests: list[ApiRequest] = []

    async def ask(self, request: ApiRequest, read: Any, *, timeout_s: float) -> Any:
        self.requests.append(request)
        return read({"data": [{"id": "a", "purpose": "batch"}, {"id": "b", "purpose": "agent"}]})


@pytest.mark.parametrize(("rules", "query"), [(KIMI_FILES, {}), (GLM_FILES, {"purpose": "batch"})])
async def test_files_are_listed_by_purpose(rules: FileRules, query: dict[str, str]) -> None:
    """GLM filters by purpose itself. Kimi lists all files, which are filtered locally."""
    exchange: Any = Listing()
    files = VendorFiles(exchange, rules)
    assert [file.id for file in (await files.list(timeout_s=1, purpose="batch")).files] == ["a"]
    assert [file.id for file in (await files.list(timeout_s=1)).files] == ["a", "b"]
    assert [request.query for request in exchange.requests] == [query, {}]


async def test_unsupported_file_requests_are_refused() -> None:
    """Kimi has no pages, GLM does not report on single files, and an id must not be empty, too long or a path."""
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
    assert exchange.requests == []
    with pytest.raises(InvalidResponseError):
        await VendorFiles(exchange, KIMI_FILES).delete("../models?x=1", timeout_s=1)
    assert exchange.requests[0].path == "/files/..%2Fmodels%3Fx%3D1"
