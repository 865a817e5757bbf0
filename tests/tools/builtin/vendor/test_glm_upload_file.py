"""``glm_upload_file`` uploads a file that GLM accepts for the purpose."""

from typing import TYPE_CHECKING, Any

from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

UPLOAD = "glm_upload_file"


async def test_file_is_uploaded(harness: "Harness") -> None:
    """The upload is one request and returns the id."""
    harness.write("table.csv", "a,b\n")
    result = await harness.call(UPLOAD, file="table.csv")
    assert harness.request_counts == {"glm files": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert (data["provider"], data["name"], data["purpose"], data["bytes"]) == ("glm", "table.csv", "agent", 4)
    assert data["file_id"] in result.text


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "file is missing; it should be a string"),
    ({"file": ["a.txt"]}, "file should be a string, not an array"),
    ({"file": ""}, "file: The path is empty"),
    ({"file": "a.txt", "purpose": "file-extract"}, "purpose should be 'agent', 'batch'"),
    ({"file": "a.txt", "purpose": "batch"}, "accepts files of the types .jsonl"),
    ({"file": "a.py"}, "accepts files of the types"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any request."""
    harness.write("a.txt", "alpha")
    harness.write("a.py", "x = 1")
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(UPLOAD, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    harness.write("a.txt", "alpha")
    await harness.check_failures("glm", "files", UPLOAD, file="a.txt")


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    harness = await open_harness(GLM_API_KEY="")
    harness.write("a.txt", "alpha")
    error = await harness.refuse(UPLOAD, file="a.txt")
    assert isinstance(error, ServiceUnavailableError)
    assert "GLM_API_KEY" in error.message


async def test_unsupported_file_kind_is_refused(harness: "Harness") -> None:
    """A program is refused regardless of its name."""
    harness.write("table.csv", b"\x7fELF\0")
    error = await harness.refuse(UPLOAD, file="table.csv")
    assert isinstance(error, InvalidArgumentsError)
    assert error.message.startswith("file: 'table.csv' is a program by its signature; agent accepts ")
