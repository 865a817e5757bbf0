"""``smart_file_query`` chooses a method by the kind of the file and reports the method in the answer."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
)
from toold.tools.builtin.vendor.smart_file_query import embeddable
from toold.tools.workspace_files import MAX_TEXT_BYTES

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

QUERY = "smart_file_query"
PDF = b"%PDF-1.7\n\x00\xff"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def test_text_file_is_embedded_in_the_question(harness: "Harness") -> None:
    """A text file needs no upload and one completion."""
    harness.write("src/a.py", "x = 1\n")
    result = await harness.call(QUERY, question="What is x?", file_path="src/a.py")
    assert harness.request_counts == {"glm chat": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert (data["file"], data["method"], data["uploaded"]) == ("src/a.py", "embedded", False)
    assert "file_id" not in data
    assert "1 file attached: src/a.py" in result.text


async def test_image_is_sent_to_a_suitable_model(harness: "Harness") -> None:
    """If the caller names no model, a model that accepts images is chosen."""
    harness.write("a.png", PNG)
    result = await harness.call(QUERY, question="What is on it?", file_path="a.png", provider="glm")
    assert harness.request_counts == {"glm chat": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert (data["method"], data["provider"]) == ("image", "glm")
    assert data["model_choice_reason"]
    assert "1 image attached" in result.text


async def test_other_documents_are_extracted_by_kimi(harness: "Harness") -> None:
    """The first question needs an upload, a fetch and a completion. With the file id the next
    question needs no upload.
    """
    harness.write("a.pdf", PDF)
    first = await harness.data(QUERY, question="What is it?", file_path="a.pdf")
    assert harness.request_counts == {"kimi files": 2, "glm chat": 1}
    assert (first["file"], first["method"], first["uploaded"]) == ("a.pdf", "extracted", True)
    second = await harness.data(QUERY, question="And?", file_id=first["file_id"])
    assert harness.request_counts == {"kimi files": 3, "glm chat": 2}
    assert (second["method"], second["uploaded"], second["file_id"]) == ("extracted", False, first["file_id"])


@pytest.mark.parametrize(
    ("content", "what"), [(b"MZ\x90\0", "a program"), (b"\x01\0\x02", "a binary file of unknown kind")]
)
async def test_binary_file_without_text_is_refused(harness: "Harness", content: bytes, what: str) -> None:
    """The error names the kind of the file, and no request is sent."""
    harness.write("a.pdf", content)
    error = await harness.refuse(QUERY, question="What is it?", file_path="a.pdf")
    assert isinstance(error, InvalidArgumentsError)
    assert error.message.startswith(f"file_path: 'a.pdf' is {what}")


async def test_caller_chooses_provider_and_model(harness: "Harness") -> None:
    """GLM can answer about text that Kimi extracted, and a named model is used."""
    harness.write("a.pdf", PDF)
    data = await harness.data(QUERY, question="?", file_path="a.pdf", provider="glm")
    assert harness.request_counts == {"kimi files": 2, "glm chat": 1}
    assert data["provider"] == "glm"
    data = await harness.data(QUERY, question="?", file_id=data["file_id"], model="moonshot-v1-32k")
    assert harness.last["model"] == "moonshot-v1-32k"


async def test_conversation_continues_in_another_tool(harness: "Harness") -> None:
    """``chat`` can continue the conversation."""
    harness.write("a.txt", "alpha")
    first = await harness.data(QUERY, question="What is it?", file_path="a.txt")
    await harness.call("chat", prompt="And?", continuation_id=first["continuation_id"])
    assert "What is it?" in harness.last["messages"][0]["content"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfalpha", "alpha"),
        (b"", ""),
        (b"x" * MAX_TEXT_BYTES, "x" * MAX_TEXT_BYTES),
        (b"x" * (MAX_TEXT_BYTES + 1), None),
        (b"a\0b", None),
        (b"\xff\xfe", None),
    ],
    ids=["mark", "empty", "largest", "too large", "binary", "no UTF-8"],
)
def test_embeddable_text_is_bounded_utf8(content: bytes, text: str | None) -> None:
    """Only UTF-8 text of a bounded size is embedded."""
    assert embeddable(content) == text


@pytest.mark.parametrize("step", ["status=500", "delay=0 status=200"])
async def test_failure_after_an_upload_reports_the_file_id(harness: "Harness", step: str) -> None:
    """If fetching or answering fails, the error has the id, with which a retry needs no further upload."""
    harness.write("a.pdf", PDF)
    harness.simulator.plan("kimi", "files", "delay=0")  # the upload
    harness.simulator.plan("kimi", "files", step)
    harness.simulator.plan("glm", "chat", "status=400")
    error = await harness.fail(QUERY, question="?", file_path="a.pdf")
    assert (error.executed, error.retryable) == ("yes", False)
    assert error.details is not None
    assert "retry with file_id" in error.message
    harness.simulator.plan("glm", "chat", "delay=0")
    repeat = await harness.fail(QUERY, question="?", file_id="f-0")
    assert isinstance(repeat, NotFoundError)
    assert (await harness.call("smart_file_download", file_id=error.details["file_id"])).text


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"question": ""}, "question should have at least 1 character"),
    ({"question": None}, "question should be a string, not null"),
    ({"file_path": None}, "give either file_path (a file in the workspace) or file_id"),
    ({"file_id": "f-1"}, "give either file_path (a file in the workspace) or file_id"),
    ({"file_path": ""}, "file_path should have at least 1 character"),
    ({"file_path": ["a.txt"]}, "file_path should be a string, not an array"),
    ({"provider": "acme"}, "Unknown provider 'acme'; known: glm, kimi."),
    ({"provider": "glm", "model": "kimi-k2.6"}, "kimi-k2.6 is a kimi model; the call requires glm"),
    ({"model": "kimi-k9"}, "Unknown model"),
    ({"continuation_id": 1}, "continuation_id should be a string, not 1"),
    ({"path": "a.txt"}, "path is not an argument; did you mean 'file_path'"),
    ({"file_path": "directory"}, "file_path: 'directory' is a directory"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any upload."""
    harness.write("a.pdf", PDF)
    harness.write("directory/x", "")
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(QUERY, **{"question": "?", "file_path": "a.pdf", **arguments})
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_only_workspace_files_are_read(harness: "Harness") -> None:
    """A path outside the workspace, a missing file and an unknown conversation are errors."""
    (harness.directory.parent / "secret.txt").write_text("s3cret")
    assert isinstance(await harness.refuse(QUERY, question="?", file_path="../secret.txt"), PermissionDeniedError)
    assert isinstance(await harness.refuse(QUERY, question="?", file_path="none.txt"), NotFoundError)
    harness.write("a.pdf", PDF)
    assert isinstance(
        await harness.refuse(QUERY, question="?", file_path="a.pdf", continuation_id="0" * 32), NotFoundError
    )


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request, during the completion and during the upload."""
    harness.write("a.txt", "alpha")
    harness.write("a.pdf", PDF)
    await harness.check_failures("glm", "chat", QUERY, question="?", file_path="a.txt")
    await harness.check_failures("kimi", "files", QUERY, question="?", file_path="a.pdf")


async def test_text_needs_no_kimi_key(open_harness: "OpenHarness") -> None:
    """GLM answers about text. If only Kimi can extract the file, the error names the missing key."""
    harness = await open_harness(KIMI_API_KEY="")
    harness.write("a.txt", "alpha")
    harness.write("a.pdf", PDF)
    assert (await harness.data(QUERY, question="?", file_path="a.txt"))["provider"] == "glm"
    for name, value in {"file_path": "a.pdf", "file_id": "f-1"}.items():
        error = await harness.refuse(QUERY, question="?", **{name: value})
        assert isinstance(error, ServiceUnavailableError)
        assert "KIMI_API_KEY" in error.message
    assert harness.request_counts == {"glm chat": 1}
