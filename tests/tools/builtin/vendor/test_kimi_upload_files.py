"""``kimi_upload_files``: uploads, and refusals before the first upload."""

from typing import TYPE_CHECKING, Any

from toold.protocol.error_codes import (
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
)

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

UPLOAD = "kimi_upload_files"


async def test_files_are_uploaded(harness: "Harness") -> None:
    """There is one request per file, and each file has an id that other tools accept."""
    harness.write("a.pdf", b"%PDF-1.7\0")
    harness.write("docs/b.txt", "beta")
    result = await harness.call(UPLOAD, files=["a.pdf", "docs/b.txt"])
    assert harness.request_counts == {"kimi files": 2}
    assert isinstance(result.structured, dict)
    rows = result.structured["files"]
    assert [(row["name"], row["bytes"], row["purpose"], row["status"]) for row in rows] == [
        ("a.pdf", 9, "file-extract", "ok"),
        ("b.txt", 4, "file-extract", "ok"),
    ]
    assert len({row["file_id"] for row in rows}) == 2
    assert all(row["file_id"] in result.text for row in rows)
    assert (result.metadata.provider, result.metadata.model) == ("kimi", None)


async def test_purpose_is_sent(harness: "Harness") -> None:
    """Kimi's processing depends on the purpose."""
    harness.write("a.jsonl", "{}\n")
    data = await harness.data(UPLOAD, files=["a.jsonl"], purpose="batch")
    assert data["files"][0]["purpose"] == "batch"


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "files is missing; it should be an array"),
    ({"files": []}, "files should have at least 1 item"),
    ({"files": 7}, "files should be an array, not 7"),
    ({"files": ["a.txt"] * 21}, "files should have at most 20 items"),
    ({"files": [1]}, "files.0 should be a string, not 1"),
    ({"files": ["a.txt"], "purpose": "fun"}, "purpose should be 'file-extract', 'image', 'video' or 'batch'"),
    ({"files": ["a.txt"], "purpose": "batch"}, "accepts files of the types .jsonl, not 'a.txt'"),
    ({"files": ["a.txt", "empty.txt"]}, "files.1: 'empty.txt' is empty"),
    ({"files": ["a.txt", "directory"]}, "files.1: 'directory' is a directory"),
    ({"files": ["a.txt"], "model": "x"}, "model is not an argument"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before the first upload, even if some of the files are valid."""
    harness.write("a.txt", "alpha")
    harness.write("empty.txt", "")
    harness.write("directory/x", "")
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(UPLOAD, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_only_workspace_files_are_uploaded(harness: "Harness") -> None:
    """Files outside the workspace are not read, and missing files are reported."""
    (harness.directory.parent / "secret.txt").write_text("s3cret")
    assert isinstance(await harness.refuse(UPLOAD, files=["../secret.txt"]), PermissionDeniedError)
    assert isinstance(await harness.refuse(UPLOAD, files=["none.txt"]), NotFoundError)


async def test_secrets_are_uploaded_only_if_the_operator_allows_it(open_harness: "OpenHarness") -> None:
    """The configuration lists the allowed names, and a caller cannot extend the list."""
    harness = await open_harness(TOOLD_READABLE_SECRETS=".env.test")
    harness.write(".env", "KEY=s3cret")
    harness.write(".env.test", "KEY=none")
    error = await harness.refuse(UPLOAD, files=[".env.test", ".env"])
    assert isinstance(error, PermissionDeniedError)
    assert "files.1: '.env' looks like a secret" in error.message
    await harness.call(UPLOAD, files=[".env.test"])


async def test_uploads_before_a_failure_are_reported(harness: "Harness") -> None:
    """The earlier files are at the vendor, so the error has executed ``yes`` and is not retryable."""
    harness.write("a.txt", "alpha")
    harness.write("[[sim:status=429]].txt", "beta")
    error = await harness.fail(UPLOAD, files=["a.txt", "[[sim:status=429]].txt"])
    assert (error.code, error.executed, error.retryable) == ("RATE_LIMITED", "yes", False)
    assert error.details is not None
    (row,) = error.details["uploaded"]
    assert row["name"] == "a.txt"
    assert row["file_id"] in error.message


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    harness.write("a.txt", "alpha")
    await harness.check_failures("kimi", "files", UPLOAD, files=["a.txt"])


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    harness = await open_harness(KIMI_API_KEY="")
    harness.write("a.txt", "alpha")
    error = await harness.refuse(UPLOAD, files=["a.txt"])
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
    assert not error.retryable


async def test_unsupported_file_kind_prevents_all_uploads(harness: "Harness") -> None:
    """The content decides the kind, not the name. None of the files is uploaded."""
    harness.write("a.txt", "alpha")
    harness.write("report.pdf", b"MZ\x90\0")
    harness.write("b.pdf", b"%PDF-1.7\0")
    error = await harness.refuse(UPLOAD, files=["a.txt", "report.pdf"])
    assert isinstance(error, InvalidArgumentsError)
    assert error.message.startswith("files.1: 'report.pdf' is a program by its signature; file-extract accepts ")
    error = await harness.refuse(UPLOAD, files=["b.pdf"], purpose="image")
    assert error.message == "files.0: 'b.pdf' is a document by its signature; image accepts images."
