"""Files at a vendor, formatted as data and as text."""

from toold.providers import RemoteFile
from toold.tools.builtin.vendor.remote_files import file_line, file_row


def test_missing_fields_are_omitted() -> None:
    """GLM reports no status, and some files have no date."""
    assert file_row(RemoteFile("f-1", "a.txt", 4, "agent", 0)) == {
        "file_id": "f-1",
        "name": "a.txt",
        "bytes": 4,
        "purpose": "agent",
    }


def test_failed_extraction_is_explained() -> None:
    """Data and text have the status, and the date is ISO 8601 in UTC."""
    file = RemoteFile("f-1", "a.pdf", 4096, "file-extract", 1_767_225_600, "error", "no text in it")
    assert file_row(file)["created_at"] == "2026-01-01T00:00:00+00:00"
    assert (file_row(file)["status"], file_row(file)["status_details"]) == ("error", "no text in it")
    assert file_line(file) == "f-1; a.pdf; 4,096 bytes; file-extract; error; no text in it"
