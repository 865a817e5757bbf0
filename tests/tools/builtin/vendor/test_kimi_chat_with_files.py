"""``kimi_chat_with_files`` adds the text that Kimi extracted from files to the question."""

from typing import TYPE_CHECKING, Any

from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

CHAT = "kimi_chat_with_files"


async def uploaded(harness: "Harness", *names: str) -> list[str]:
    """The ids of uploaded files."""
    data = await harness.data("kimi_upload_files", files=[harness.write(name, f"in {name}") for name in names])
    return [row["file_id"] for row in data["files"]]


async def test_each_file_is_fetched_once_for_one_completion(harness: "Harness") -> None:
    """There is one request per file and one completion of Kimi's default model. A duplicate id is fetched once."""
    first, second = await uploaded(harness, "a.txt", "b.txt")
    before = harness.request_counts
    result = await harness.call(CHAT, prompt="What is in them?", file_ids=[first, second, first])
    assert harness.request_counts - before == {"kimi files": 2, "kimi chat": 1}
    assert f"2 files attached: {first}" in result.text
    data = result.structured
    assert isinstance(data, dict)
    assert (data["provider"], data["file_ids"]) == ("kimi", [first, second])
    assert result.metadata.model == data["model"]
    request = harness.last["messages"][-1]["content"]
    assert "in a.txt" in request
    assert request.endswith("What is in them?")


async def test_settings_are_sent(harness: "Harness") -> None:
    """Model, system message, temperature, token limit and thinking are sent."""
    file_ids = await uploaded(harness, "a.txt")
    more = {"system": "Be brief.", "temperature": 0.2, "max_tokens": 50}
    await harness.call(CHAT, prompt="?", file_ids=file_ids, model="moonshot-v1-32k", **more)
    assert harness.last["model"] == "moonshot-v1-32k"
    assert harness.last["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (harness.last["temperature"], harness.last["max_completion_tokens"]) == (0.2, 50)
    await harness.call(CHAT, prompt="?", file_ids=file_ids, model="kimi-k2.6", thinking=False)
    assert harness.last["thinking"] == {"type": "disabled"}


async def test_conversation_is_continued(harness: "Harness") -> None:
    """The next request has the earlier turns. The caller names the files again if it needs them again."""
    file_ids = await uploaded(harness, "a.txt")
    first = await harness.data(CHAT, prompt="What is it?", file_ids=file_ids)
    await harness.call(CHAT, prompt="And?", file_ids=file_ids, continuation_id=first["continuation_id"])
    assert "What is it?" in harness.last["messages"][0]["content"]


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ""}, "prompt should have at least 1 character"),
    ({"prompt": 1}, "prompt should be a string, not 1"),
    ({"file_ids": []}, "file_ids should have at least 1 item"),
    ({"file_ids": [""]}, "file_ids.0 should have at least 1 character"),
    ({"file_ids": ["x"] * 33}, "file_ids should have at most 32 items"),
    ({"file_ids": None}, "file_ids should be an array, not null"),
    ({"system": 1}, "system should be a string, not 1"),
    ({"model": "glm-4.6"}, "glm-4.6 is a glm model; the call requires kimi"),
    ({"model": "kimi-k9"}, "Unknown model"),
    ({"thinking": "deep"}, "thinking should be true or false"),
    ({"thinking": False, "model": "kimi-k3"}, "thinking: kimi-k3 always thinks"),
    ({"temperature": 1.5}, "temperature should be less than or equal to 1, not 1.5"),
    ({"max_tokens": 0}, "max_tokens should be greater than or equal to 1, not 0"),
    ({"continuation_id": 7}, "continuation_id should be a string, not 7"),
    ({"files": ["a"]}, "files is not an argument; did you mean 'file_ids'"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any file is fetched."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(CHAT, **{"prompt": "?", "file_ids": ["f-1"], **arguments})
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_missing_file_and_conversation_are_errors(harness: "Harness") -> None:
    """An unknown file and an unknown conversation are errors."""
    error = await harness.fail(CHAT, prompt="?", file_ids=["f-0"])
    assert isinstance(error, NotFoundError)
    assert "f-0 not found" in error.message
    assert harness.request_counts == {"kimi files": 1}
    assert isinstance(await harness.refuse(CHAT, prompt="?", file_ids=["f-0"], continuation_id="0" * 32), NotFoundError)


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request, while fetching a file and
    during the completion.
    """
    file_ids = await uploaded(harness, "a.txt")
    await harness.check_failures("kimi", "files", CHAT, prompt="?", file_ids=file_ids)
    await harness.check_failures("kimi", "chat", CHAT, prompt="?", file_ids=file_ids)


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without Kimi's key the error names the setting, because the other vendor does not have the files."""
    error = await (await open_harness(KIMI_API_KEY="")).refuse(CHAT, prompt="?", file_ids=["f-1"])
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
