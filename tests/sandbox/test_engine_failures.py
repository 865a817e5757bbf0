"""How the errors of a program are reported to its author."""

from typing import Any

import pytest
from toold.sandbox import ProgramFailedError, ProgramRefusedError, ProgramStoppedError, SandboxLimits

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_exception_is_reported_with_its_traceback(run: Any) -> None:
    """The traceback shows the program's own line numbers and text, innermost line last."""
    with pytest.raises(ProgramFailedError) as raised:
        await run("def ratio(e):\n    return 1 / len(e)\n\nx = ratio([])\n")
    assert str(raised.value).splitlines() == [
        "ZeroDivisionError: division by zero",
        "  line 4, in <module>: x = ratio([])",
        "  line 2, in ratio: return 1 / len(e)",
    ]


async def test_a_tool_error_is_reported_as_tool_error(run: Any) -> None:
    """The report shows ``ToolError`` instead of the engine's class, and the original source line."""
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
async def test_a_syntax_error_is_rejected_with_its_line(run: Any, code: str, message: str) -> None:
    """The program is rejected before any of it runs."""
    with pytest.raises(ProgramRefusedError, match=message):
        await run(code)


async def test_a_recursion_traceback_is_truncated(run: Any) -> None:
    """Only the innermost lines of a deep recursion are reported."""
    with pytest.raises(ProgramFailedError) as raised:
        await run("def f():\n    return f()\n\nf()")
    assert len(str(raised.value).splitlines()) < 10
    assert str(raised.value).startswith("RecursionError: maximum recursion depth exceeded")


async def test_a_long_exception_message_is_truncated(run: Any) -> None:
    """The report keeps the beginning and the end of the message."""
    with pytest.raises(ProgramFailedError, match="bytes omitted") as raised:
        await run("raise ValueError('a' * 100000 + 'the end')")
    assert str(raised.value).startswith("ValueError: aaa")
    assert "the end" in str(raised.value)
    assert len(str(raised.value)) < 10_000


async def test_a_worker_that_runs_out_of_memory_is_reported_as_the_memory_limit(make: Any, run_in: Any) -> None:
    """The error is a ProgramStoppedError, although the engine reports an exception of the program."""
    # The engine's clock also runs while the machine does other work.
    patient = make(SandboxLimits(cpu_s=120.0, memory_bytes=64 * 1024**2, calls=50))
    with pytest.raises(ProgramStoppedError) as raised:
        await run_in(patient)("x = [0]\nfor i in range(40):\n    x = [x, x]\nprint(x)", timeout_s=150.0)
    assert raised.value.bound == "memory"
