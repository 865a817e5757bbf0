"""``smart_file_download`` returns a file's text in the answer and writes no file."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ProviderError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

DOWNLOAD = "smart_file_download"


async def at_kimi(harness: "Harness", content: str | bytes) -> str:
    """The id of a file that was uploaded to Kimi."""
    data = await harness.data("kimi_upload_files", files=[harness.write("a.txt", content)])
    return str(data["files"][0]["file_id"])


async def at_glm(harness: "Harness", content: str | bytes) -> str:
    """The id of a batch file that was uploaded to GLM."""
    data = await harness.data("glm_upload_file", file=harness.write("a.jsonl", content), purpose="batch")
    return str(data["file_id"])


async def test_text_extracted_by_kimi_is_returned(harness: "Harness") -> None:
    """The download is one request and does not change the directory."""
    file_id = await at_kimi(harness, "alpha\n")
    before, files = harness.request_counts, sorted(harness.directory.rglob("*"))
    result = await harness.call(DOWNLOAD, file_id=file_id)
    assert harness.request_counts - before == {"kimi files": 1}
    assert "alpha\n" in result.text
    assert result.structured == {
        "file_id": file_id, "provider": "kimi", "offset": 0, "text": result.text,
        "chars": len(result.text), "total_chars": len(result.text),
    }  # fmt: skip
    assert sorted(harness.directory.rglob("*")) == files


async def test_glm_batch_file_is_returned(harness: "Harness") -> None:
    """The text of the file is returned unchanged."""
    file_id = await at_glm(harness, '{"a": 1}\n')
    assert (await harness.call(DOWNLOAD, file_id=file_id, provider="glm")).text == '{"a": 1}\n'


async def test_long_file_is_returned_in_parts(harness: "Harness") -> None:
    """``next_offset`` is the start of the next part. The last part has none."""
    file_id = await at_glm(harness, "0123456789")
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        result = await harness.call(DOWNLOAD, file_id=file_id, provider="glm", offset=offset, max_chars=4)
        assert isinstance(result.structured, dict)
        parts.append(result.text)
        offset = result.structured.get("next_offset")
    assert parts == ["0123", "4567", "89"]
    assert (await harness.call(DOWNLOAD, file_id=file_id, provider="glm", offset=99)).text == ""


async def test_binary_file_is_refused(harness: "Harness") -> None:
    """A binary file is an error."""
    error = await harness.fail(DOWNLOAD, file_id=await at_glm(harness, b"\xff\x00"), provider="glm")
    assert isinstance(error, ProviderError)
    assert "is not a text file" in error.message


async def test_missing_file_is_an_error(harness: "Harness") -> None:
    """The error contains the vendor's message."""
    error = await harness.fail(DOWNLOAD, file_id="f-0")
    assert isinstance(error, NotFoundError)
    assert error.message.startswith("There is no file 'f-0': Kimi (Moonshot) rejected the request with HTTP 404 (")
    assert (error.executed, error.retryable) == ("no", False)
    assert isinstance(await harness.fail(DOWNLOAD, file_id="f-0", provider="glm"), NotFoundError)


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "file_id is missing; it should be a string"),
    ({"file_id": ""}, "file_id should have at least 1 character"),
    ({"file_id": "."}, "The file id is empty"),
    ({"file_id": "x", "provider": "openai"}, "provider should be 'kimi' or 'glm', not \"openai\""),
    ({"file_id": "x", "offset": -1}, "offset should be greater than or equal to 0, not -1"),
    ({"file_id": "x", "max_chars": 0}, "max_chars should be greater than or equal to 1, not 0"),
    ({"file_id": "x", "max_chars": 1_000_001}, "max_chars should be less than or equal to 1000000"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused, including a destination path."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(DOWNLOAD, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


@pytest.mark.parametrize("provider", ["kimi", "glm"])
async def test_outage_timeout_and_cancel(harness: "Harness", provider: Any) -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    await harness.check_failures(provider, "files", DOWNLOAD, file_id="f-1", provider=provider)


@pytest.mark.parametrize("provider", ["kimi", "glm"])
async def test_missing_key_is_named(open_harness: "OpenHarness", provider: str) -> None:
    """The error names the key of the vendor that stores the file."""
    harness = await open_harness(**{f"{provider.upper()}_API_KEY": ""})
    error = await harness.refuse(DOWNLOAD, file_id="f-1", provider=provider)
    assert isinstance(error, ServiceUnavailableError)
    assert f"{provider.upper()}_API_KEY" in error.message
