"""The definitions that every program starts with: errors with a code, and ``gather_settled``."""

from typing import Any

import pytest
from toold.sandbox import ProgramFailedError

pytestmark = pytest.mark.asyncio(loop_scope="module")

CATCHING = "try:\n    await crm.get_contact(contact_id=99)\nexcept {} as e:\n    return {}"


@pytest.mark.parametrize(
    ("caught", "returned", "expected"),
    [
        ("ToolError", "e.code", "NOT_FOUND"),
        ("Exception", "e.message", "There is no contact 99."),
        ("ToolError", "str(e)", "NOT_FOUND: There is no contact 99."),
        ("Exception", "f'{e.code}!'", "NOT_FOUND!"),
        ("Exception", "getattr(e, 'code', None)", "NOT_FOUND"),
        ("Exception", "[hasattr(e, 'code'), hasattr(e, 'nope')]", [True, False]),
        ("Exception", "isinstance(e, ToolError)", True),
    ],
)
async def test_a_tool_error_has_a_code(run: Any, caught: str, returned: str, expected: Any) -> None:
    """A program can read the code and the message in any common way."""
    assert await run(CATCHING.format(caught, returned)) == expected


async def test_an_error_of_the_program_has_no_code(run: Any) -> None:
    """Other exceptions raise AttributeError for ``code``, as in CPython."""
    with pytest.raises(ProgramFailedError, match="'ZeroDivisionError' object has no attribute 'code'"):
        await run("try:\n    1 / 0\nexcept Exception as e:\n    return e.code")
    assert await run("try:\n    1 / 0\nexcept Exception as e:\n    return getattr(e, 'code', 'none')") == "none"


async def test_except_tool_error_catches_only_tool_errors(run: Any) -> None:
    """``except ToolError`` does not catch the program's own exceptions."""
    with pytest.raises(ProgramFailedError, match="RuntimeError: mine"):
        await run("try:\n    raise RuntimeError('mine')\nexcept ToolError:\n    return 1")


async def test_gather_settled_returns_each_outcome(run: Any) -> None:
    """The outcomes are in the order of the arguments."""
    code = "async def own():\n    return 1 / 0\n"
    code += "return await gather_settled(crm.get_contact(contact_id=1), crm.get_contact(contact_id=99), own())"
    first, second, third = await run(code)
    assert (first["ok"], first["value"]["name"]) == (True, "Ada Lovelace")
    assert second == {"ok": False, "code": "NOT_FOUND", "error": "There is no contact 99."}
    assert third == {"ok": False, "code": None, "error": "ZeroDivisionError: division by zero"}


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("import asyncio", "asyncio.gather"),
        ("from asyncio import gather", "gather"),
        ("from asyncio import (\n    gather as both,\n)", "both"),
        ("", "gather"),
    ],
)
async def test_gather_supports_return_exceptions(run: Any, imported: str, name: str) -> None:
    """The engine's own ``gather`` does not support it."""
    code = f"{imported}\nfound = await {name}(crm.get_contact(contact_id=99), return_exceptions=True)\n"
    assert await run(code + "return [error.code for error in found]") == ["NOT_FOUND"]
    with pytest.raises(ProgramFailedError, match="ToolError: NOT_FOUND"):
        await run("import asyncio\nawait asyncio.gather(crm.get_contact(contact_id=99))")


async def test_next_accepts_a_generator_expression(run: Any) -> None:
    """The engine evaluates generator expressions to lists, which ``next`` must still accept."""
    assert await run("return [next((x for x in [1, 2] if x > 1), None), next((x for x in []), 'none')]") == [2, "none"]
