"""``glm_upload_file``: what GLM takes, by purpose."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import House, OpenHouse

UPLOAD = "glm_upload_file"


async def test_a_file_is_sent(house: "House") -> None:
    """One request, and the id comes back."""
    house.write("table.csv", "a,b\n")
    result = await house.call(UPLOAD, file="table.csv")
    assert house.asked == {"glm files": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert (data["provider"], data["name"], data["purpose"], data["bytes"]) == ("glm", "table.csv", "agent", 4)
    assert data["file_id"] in result.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "file is missing; it should be a string"),
        ({"file": ["a.txt"]}, "file should be a string, not an array"),
        ({"file": ""}, "file: The path is empty"),
        ({"file": "a.txt", "purpose": "file-extract"}, "purpose should be 'agent', 'batch'"),
        ({"file": "a.txt", "purpose": "batch"}, "accepts for batch files of the types .jsonl"),
        ({"file": "a.py"}, "accepts for agent files of the types"),
    ],
)
async def test_wrong_arguments_are_told(house: "House", arguments: dict[str, Any], says: str) -> None:
    """Before anything is sent."""
    house.write("a.txt", "alpha")
    house.write("a.py", "x = 1")
    error = await house.refuse(UPLOAD, **arguments)
    assert isinstance(error, InvalidArgumentsError)
    assert says in error.message


async def test_how_it_fails(house: "House") -> None:
    """Down, out of time, cancelled: never sent twice."""
    house.write("a.txt", "alpha")
    await house.fails_well("glm", "files", UPLOAD, file="a.txt")


async def test_without_a_key_it_says_which(open_house: "OpenHouse") -> None:
    """It is listed all the same."""
    house = await open_house(GLM_API_KEY="")
    house.write("a.txt", "alpha")
    error = await house.refuse(UPLOAD, file="a.txt")
    assert isinstance(error, ServiceUnavailableError)
    assert "GLM_API_KEY" in error.message


async def test_what_is_of_no_use_there_is_refused(house: "House") -> None:
    """A program is one, whatever its name says."""
    house.write("table.csv", b"\x7fELF\0")
    error = await house.refuse(UPLOAD, file="table.csv")
    assert isinstance(error, InvalidArgumentsError)
    assert error.message.startswith("file: 'table.csv' is a program by its signature; agent accepts ")
