"""Attempts to escape from the sandbox or to exhaust it: each ends in a clear error, and nothing keeps running."""

from collections.abc import Callable
from typing import Any

import pytest
from toold.sandbox import (
    ProgramFailedError,
    ProgramOutput,
    ProgramRefusedError,
    ProgramStoppedError,
    Sandbox,
    SandboxError,
    SandboxLimits,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import socket", "No module named 'socket'"),
        ("import subprocess", "No module named 'subprocess'"),
        ("import ctypes", "No module named 'ctypes'"),
        ("import importlib\nimportlib.import_module('os')", "No module named 'importlib'"),
        ("import toold", "No module named 'toold'"),
        ("__import__('socket')", "__import__"),
        ("import os\nos.system('id')", "has no attribute 'system'"),
        ("import os\nreturn os.environ['HOME']", "os.environ"),
        ("import os\nreturn os.getenv('HOME')", "os.getenv"),
        ("import os\nreturn os.listdir('/')", "PermissionError"),
        ("return open('/etc/passwd').read()", "PermissionError"),
        ("open('/tmp/x', 'w').write('x')", "PermissionError"),
        ("from pathlib import Path\nreturn Path('/etc/passwd').read_text()", "PermissionError"),
        ("from pathlib import Path\nreturn [str(p) for p in Path('/').iterdir()]", "PermissionError"),
        ("return ().__class__.__bases__[0].__subclasses__()", "__class__"),
        ("return (lambda: 0).__globals__", "__globals__"),
        ("return crm.search_contacts.__self__", "__self__"),
        ("return crm.__dict__", "__dict__"),
        ("return type(crm).__mro__", "__mro__"),
        ("try:\n    1 / 0\nexcept Exception as e:\n    return e.__traceback__.tb_frame", "__traceback__"),
        ("return '{0.__class__.__init__.__globals__}'.format(crm)", "attribute|__class__|__init__"),
        ("return globals()", "globals"),
        ("return eval('open(\"/etc/passwd\")')", "PermissionError"),
        ("exec('import socket')", "No module named 'socket'"),
        ("import sys\nreturn sys.modules", "modules"),
        ("import sys\nreturn sys._getframe()", "_getframe"),
        ("input()", "input"),
    ],
)
async def test_a_program_cannot_escape(run: Any, recorded_tools: Any, code: str, message: str) -> None:
    """A program cannot reach files, the network, the environment, frames or objects of the host."""
    with pytest.raises((ProgramFailedError, ProgramRefusedError), match=message):
        await run(code)
    assert recorded_tools.calls == []


def little(bound: str | None) -> SandboxLimits:
    """Low limits. The CPU limit is low only for tests that expect it, so that a busy machine does not cause it."""
    return SandboxLimits(cpu_s=0.3 if bound and "cpu" in bound else 60.0, memory_bytes=24 * 1024**2, calls=20)


SWALLOWING = "while True:\n    try:\n        {}\n    except BaseException:\n        pass"


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("while True:\n    pass", "cpu"),
        (SWALLOWING.format("while True: pass"), "cpu"),
        ("sum(i * i for i in range(10 ** 12))", "cpu|memory"),
        ("import itertools\nfor _ in itertools.count():\n    pass", "cpu"),
        ("x = []\nwhile True:\n    x.append('a' * 1000)", "memory"),
        (SWALLOWING.format("x = 'a' * 10 ** 10"), "memory"),
        ("return 10 ** 10 ** 9", "memory"),
        ("x = [0] * 10 ** 9", "memory"),
        ("x = 'a'\nwhile True:\n    x += x", "memory"),
        ("return {i: [i] for i in range(10 ** 9)}", "memory"),
        ("while True:\n    print('x' * 10000)", "output"),
        (SWALLOWING.format("print('x' * 10000)"), "output"),
        ("for _ in range(1000):\n    await crm.get_contact(contact_id=99)", None),
        (
            "for _ in range(1000):\n    try:\n        await crm.get_contact(contact_id=99)\n    except:\n        pass",
            "calls",
        ),
        (SWALLOWING.format("await crm.get_contact(contact_id=1)"), "calls"),
        ("import asyncio\nawait asyncio.gather(*[crm.list_deals() for _ in range(1000)])", "calls"),
        (SWALLOWING.format("await gather_settled(*[crm.list_deals() for _ in range(9)])"), "calls"),
        ("import os\n" + SWALLOWING.format("os.getenv('X')"), "calls"),
        (
            "import asyncio\n" + SWALLOWING.format("await asyncio.sleep(0)\n        await asyncio.sleep(1e-9)"),
            "calls|cpu",
        ),
    ],
)
async def test_a_program_cannot_suppress_a_limit(
    make: Callable[..., Sandbox], run_in: Any, recorded_tools: Any, code: str, bound: str | None
) -> None:
    """No ``except`` clause can catch a limit, and the sandbox can run the next program."""
    run = run_in(make(little(bound)))
    expected = ProgramStoppedError if bound else ProgramFailedError
    with pytest.raises(expected) as raised:
        await run(code)
    if bound:
        assert isinstance(raised.value, ProgramStoppedError)
        assert raised.value.bound in bound.split("|"), str(raised.value)
    assert recorded_tools.going == 0
    assert await run("return 1") == 1


async def test_deep_recursion_raises_an_exception(run: Any) -> None:
    """A program can catch a RecursionError of its functions; recursion inside the interpreter ends with a clear
    error."""
    assert await run("def f(): return f()\ntry:\n    f()\nexcept RecursionError:\n    return 'caught'") == "caught"
    for code in (
        "class A:\n    def __repr__(self): return repr(self)\nrepr(A())",
        "(" * 5000 + ")" * 5000,
        "-" * 30000 + "1",
    ):
        with pytest.raises(SandboxError):
            await run(code)


@pytest.mark.parametrize("code", ["await weather.never()", SWALLOWING.format("await weather.never()")])
async def test_a_tool_that_never_returns_ends_at_the_time_limit(run: Any, recorded_tools: Any, code: str) -> None:
    """The time limit includes the time that a program waits for a tool; the call is cancelled."""
    assert await run("return 1") == 1  # the worker is running now
    with pytest.raises(ProgramStoppedError, match=r"The program exceeded its 0.5 s") as raised:
        await run(code, timeout_s=0.5)
    assert raised.value.bound == "time"
    assert recorded_tools.going == 0


async def test_excessive_output_is_kept_up_to_the_limit(run: Any) -> None:
    """The output before the limit is available."""
    output = ProgramOutput()
    with pytest.raises(ProgramStoppedError, match="printed more than"):
        await run("print('first')\nwhile True:\n    print('x' * 10000)", output=output)
    assert output.shown.startswith("first\n")
    assert output.truncated
