"""``kimi_chat_with_files``: what Kimi read from files goes into the question."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import House, OpenHouse

CHAT = "kimi_chat_with_files"


async def uploaded(house: "House", *names: str) -> list[str]:
    """The ids of files that were sent."""
    data = await house.data("kimi_upload_files", files=[house.write(name, f"in {name}") for name in names])
    return [row["file_id"] for row in data["files"]]


async def test_each_file_is_fetched_and_one_answer_made(house: "House") -> None:
    """One request a file and one completion, by Kimi's default model; a file that is named twice goes once."""
    one, two = await uploaded(house, "a.txt", "b.txt")
    before = house.asked
    result = await house.call(CHAT, prompt="What is in them?", file_ids=[one, two, one])
    assert house.asked - before == {"kimi files": 2, "kimi chat": 1}
    assert f"2 files attached: {one}" in result.text
    data = result.structured
    assert isinstance(data, dict)
    assert (data["provider"], data["file_ids"]) == ("kimi", [one, two])
    assert result.metadata.model == data["model"]
    asked = house.last["messages"][-1]["content"]
    assert "in a.txt" in asked
    assert asked.endswith("What is in them?")


async def test_what_is_given_is_asked(house: "House") -> None:
    """Model, system, temperature, bound and thinking."""
    file_ids = await uploaded(house, "a.txt")
    more = {"system": "Be brief.", "temperature": 0.2, "max_tokens": 50}
    await house.call(CHAT, prompt="?", file_ids=file_ids, model="moonshot-v1-32k", **more)
    assert house.last["model"] == "moonshot-v1-32k"
    assert house.last["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (house.last["temperature"], house.last["max_completion_tokens"]) == (0.2, 50)
    await house.call(CHAT, prompt="?", file_ids=file_ids, model="kimi-k2.6", thinking=False)
    assert house.last["thinking"] == {"type": "disabled"}


async def test_a_conversation_goes_on(house: "House") -> None:
    """The next question knows the last one; the files are named again where they are meant again."""
    file_ids = await uploaded(house, "a.txt")
    first = await house.data(CHAT, prompt="What is it?", file_ids=file_ids)
    await house.call(CHAT, prompt="And?", file_ids=file_ids, continuation_id=first["continuation_id"])
    assert "What is it?" in house.last["messages"][0]["content"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
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
    ],
)
async def test_wrong_arguments_are_told(house: "House", arguments: dict[str, Any], says: str) -> None:
    """Before a file is fetched."""
    error = await house.refuse(CHAT, **{"prompt": "?", "file_ids": ["f-1"], **arguments})
    assert isinstance(error, InvalidArgumentsError)
    assert says in error.message


async def test_what_is_not_there_is_told(house: "House") -> None:
    """An unknown file and an unknown conversation."""
    error = await house.fail(CHAT, prompt="?", file_ids=["f-0"])
    assert isinstance(error, NotFoundError)
    assert "f-0 not found" in error.message
    assert house.asked == {"kimi files": 1}
    assert isinstance(await house.refuse(CHAT, prompt="?", file_ids=["f-0"], continuation_id="none"), NotFoundError)


async def test_how_it_fails(house: "House") -> None:
    """Down, out of time, cancelled: while a file is fetched, and while the answer is made."""
    file_ids = await uploaded(house, "a.txt")
    await house.fails_well("kimi", "files", CHAT, prompt="?", file_ids=file_ids)
    await house.fails_well("kimi", "chat", CHAT, prompt="?", file_ids=file_ids)


async def test_without_a_key_it_says_which(open_house: "OpenHouse") -> None:
    """Though the other vendor could be asked: it has not got the files."""
    error = await (await open_house(KIMI_API_KEY="")).refuse(CHAT, prompt="?", file_ids=["f-1"])
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
