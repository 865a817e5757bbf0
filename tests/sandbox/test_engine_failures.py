"""How a program's end is told to whoever wrote it."""

from typing import Any

import pytest
from toold.sandbox import ProgramFailedError, ProgramRefusedError, ProgramStoppedError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_exception_is_told_with_the_lines_that_it_came_through(run: Any) -> None:
    """By the program's own lines and text, the innermost last."""
    with pytest.raises(ProgramFailedError) as raised:
        await run("def ratio(e):\n    return 1 / len(e)\n\nx = ratio([])\n")
    assert str(raised.value).splitlines() == [
        "ZeroDivisionError: division by zero",
        "  line 4, in <module>: x = ratio([])",
        "  line 2, in ratio: return 1 / len(e)",
    ]


async def test_an_error_of_a_tool_is_told_by_its_own_name(run: Any) -> None:
    """Not by that of the class which the engine has it as; and the line as it was written."""
    with pytest.raises(ProgramFailedError) as raised:
        await run("import asyncio\nawait asyncio.gather(crm.get_contact(contact_id=99))")
    assert str(raised.value).splitlines() == [
        "ToolError: NOT_FOUND: There is no contact 99.",
        "  line 2, in <module>: await asyncio.gather(crm.get_contact(contact_id=99))",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ny = (", "line 2: "),
        ("x = 1\ndel x", r"line 2: the sandbox's Python lacks the 'del' statement"),
        ("class A:\n    pass\n\nclass B(A):\n    pass", "line 4: the sandbox's Python lacks class inheritance"),
    ],
)
async def test_what_cannot_be_parsed_is_refused_with_its_line(run: Any, code: str, message: str) -> None:
    """Before any of it runs."""
    with pytest.raises(ProgramRefusedError, match=message):
        await run(code)


async def test_only_the_innermost_lines_of_a_recursion_are_told(run: Any) -> None:
    """It is a thousand deep."""
    with pytest.raises(ProgramFailedError) as raised:
        await run("def f():\n    return f()\n\nf()")
    assert len(str(raised.value).splitlines()) < 10
    assert str(raised.value).startswith("RecursionError: maximum recursion depth exceeded")


async def test_what_an_exception_says_is_cut_where_it_is_long(run: Any) -> None:
    """Its beginning and its end are told."""
    with pytest.raises(ProgramFailedError, match="bytes omitted") as raised:
        await run("raise ValueError('a' * 100000 + 'the end')")
    assert str(raised.value).startswith("ValueError: aaa")
    assert "the end" in str(raised.value)
    assert len(str(raised.value)) < 10_000


async def test_a_worker_that_its_memory_ended_is_told_as_that_bound(run: Any) -> None:
    """It is none of the program's own exceptions, though the engine has it as one."""
    with pytest.raises(ProgramStoppedError) as raised:
        await run("x = [0]\nfor i in range(40):\n    x = [x, x]\nprint(x)")
    assert raised.value.bound == "memory"
