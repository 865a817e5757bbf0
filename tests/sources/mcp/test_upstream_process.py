"""Servers as processes: their environment, what they send that is too long, and their end."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_types import JSONRPCError
from toold.sources.mcp import upstream_process
from toold.sources.mcp.message_lines import TOO_LONG
from toold.sources.mcp.upstream_failures import UpstreamUnavailableError
from toold.sources.mcp.upstream_process import ServerCommand, environment, server_process

pytestmark = pytest.mark.process


def launch(program: str) -> ServerCommand:
    return ServerCommand([sys.executable, "-c", program], environment({}), None, 4096)


def test_the_environment_is_what_was_named_and_what_programs_need() -> None:
    """Nothing else of the daemon's."""
    own = {"PATH": "/bin", "HOME": "/root", "GLM_API_KEY": "secret", "PYTHONPATH": "/x"}
    assert environment({"MODE": "fast", "HOME": "/srv"}, own) == {"PATH": "/bin", "HOME": "/srv", "MODE": "fast"}


async def test_a_message_that_is_too_long_is_an_error_for_who_waits_for_it() -> None:
    """Wherever it says whose it is; the next one is read as ever; one that is nobody's is told of."""
    said: list[str] = []
    program = (
        'print(\'{"jsonrpc": "2.0", "id": 7, "result": {"id": 9, "a": "\' + \'x\' * 100_000 + \'"}}\')\n'
        'print(\'{"jsonrpc": "2.0", "result": {"id": 9, "a": "\' + \'x\' * 100_000 + \'"}, "id": 8}\')\n'
        "print('x' * 100_000)\n"
        'print(\'{"jsonrpc": "2.0", "id": 9, "result": {}}\')\n'
    )
    async with server_process(launch(program), said.append, lambda: None) as (inbox, _):
        messages: list[Any] = [item async for item in inbox]
    received = [item.message for item in messages]
    assert all(isinstance(error, JSONRPCError) for error in received[:2])
    assert [(error.id, error.error.code) for error in received[:2]] == [(7, TOO_LONG), (8, TOO_LONG)]
    assert received[2].id == 9
    assert said == ["a message of 100,001 bytes was left out, and it is not known whose it is"]


async def test_a_message_without_an_end_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is given up, with the reason."""
    monkeypatch.setattr(upstream_process, "MAX_LEFT_OUT_BYTES", 1024 * 1024)
    monkeypatch.setattr(upstream_process, "END_GRACE_S", 0.1)
    with pytest.raises(UpstreamUnavailableError, match="it sends a message of more than 1 MiB"):
        await lost("import sys\nwhile True: sys.stdout.write('x' * 65536)")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            "import sys; sys.exit('no\\x1b[31m key')",
            "its program has ended (exit status 1), and said last: no [31m key",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "its program has ended (signal 9)"),
        ("import os, time; os.close(1); time.sleep(600)", "it has closed its output"),
    ],
    ids=["exit", "signal", "closed"],
)
async def test_how_it_ended_is_told(program: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of what went wrong for that, with the last line of its standard error."""
    monkeypatch.setattr(upstream_process, "END_GRACE_S", 0.3 if "sleep" in program else 30.0)
    with pytest.raises(UpstreamUnavailableError) as ended:
        await lost(program)
    assert str(ended.value) == told


async def lost(program: str) -> None:
    """Have the program run until it says no more, and fail then, as the SDK does."""
    async with server_process(launch(program), lambda _: None, lambda: None) as (inbox, _):
        async for _item in inbox:
            pass
        raise ConnectionError


async def test_a_flood_waits_in_its_own_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as fast as it is paid for, and no faster."""
    monkeypatch.setattr(upstream_process, "MESSAGES_PER_S", 5.0)
    program = """while True: print('{"jsonrpc": "2.0", "method": "notifications/x"}', flush=True)"""
    taken = 0
    async with server_process(launch(program), lambda _: None, lambda: None) as (inbox, _):
        began = time.monotonic()
        async for _item in inbox:
            taken += 1
            if taken == 13:
                break
    assert time.monotonic() - began > 0.4  # two seconds' worth at once, and then one each fifth of a second


async def test_its_end_and_its_last_words_are_told() -> None:
    """As soon as it says no more."""
    said: list[str] = []
    ended = asyncio.Event()
    program = "import sys; sys.stderr.write('line one\\n\\nlast words')"
    async with server_process(launch(program), said.append, ended.set) as (inbox, _):
        async with asyncio.timeout(60):
            await ended.wait()
            while said != ["line one", "last words"]:
                await asyncio.sleep(0.01)
        assert [item async for item in inbox] == []


async def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor does it hold up those who send to it, though it reads nothing."""
    monkeypatch.setattr(upstream_process, "END_GRACE_S", 0.1)
    pid = tmp_path / "pid"
    program = (
        "import os, signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    async with server_process(launch(program), lambda _: None, lambda: None):
        async with asyncio.timeout(60):
            while not pid.exists() or not pid.read_text():
                await asyncio.sleep(0.01)
    give_up = time.monotonic() + 30
    while _is_there(int(pid.read_text())):
        assert time.monotonic() < give_up
        await asyncio.sleep(0.01)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
