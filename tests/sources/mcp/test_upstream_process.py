"""Servers as child processes: environment, limits and termination."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from mcp_types import JSONRPCError
from toold.sources import program_process
from toold.sources.mcp import upstream_process
from toold.sources.mcp.upstream_exchange import TOO_LONG
from toold.sources.mcp.upstream_failures import UpstreamUnavailableError
from toold.sources.mcp.upstream_process import ServerCommand, server_process
from toold.sources.program_process import environment

pytestmark = pytest.mark.process


def command(program: str) -> ServerCommand:
    return ServerCommand([sys.executable, "-c", program], environment({}), None, 4096)


def test_the_environment_has_configured_and_essential_variables() -> None:
    """No other variables of the daemon."""
    own = {"PATH": "/bin", "HOME": "/root", "GLM_API_KEY": "secret", "PYTHONPATH": "/x"}
    assert environment({"MODE": "fast", "HOME": "/srv"}, own) == {"PATH": "/bin", "HOME": "/srv", "MODE": "fast"}


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_missing_program_or_directory_is_named(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    """The error of each event loop has the name; uvloop alone would not say it."""

    async def start(launch: ServerCommand) -> None:
        async with server_process(launch, lambda _: None, lambda: None):
            pass

    no_program = ServerCommand(["no-such-program"], environment({}), tmp_path, 4096)
    no_directory = ServerCommand([sys.executable], environment({}), tmp_path / "none", 4096)
    for launch, missing in ((no_program, "no-such-program"), (no_directory, str(tmp_path / "none"))):
        with asyncio.Runner(loop_factory=loop_factory) as runner, pytest.raises(FileNotFoundError) as raised:
            runner.run(start(launch))
        assert raised.value.filename == missing


async def test_a_too_long_message_is_an_error_for_its_request() -> None:
    """Wherever its id is; the next message is read normally; one without an id is logged."""
    lines: list[str] = []
    program = (
        'print(\'{"jsonrpc": "2.0", "id": 7, "result": {"id": 9, "a": "\' + \'x\' * 100_000 + \'"}}\')\n'
        'print(\'{"jsonrpc": "2.0", "result": {"id": 9, "a": "\' + \'x\' * 100_000 + \'"}, "id": 8}\')\n'
        "print('x' * 100_000)\n"
        'print(\'{"jsonrpc": "2.0", "id": 9, "result": {}}\')\n'
    )
    async with server_process(command(program), lines.append, lambda: None) as (inbox, _):
        messages: list[Any] = [item async for item in inbox]
    received = [item.message for item in messages]
    assert all(isinstance(error, JSONRPCError) for error in received[:2])
    assert [(error.id, error.error.code) for error in received[:2]] == [(7, TOO_LONG), (8, TOO_LONG)]
    assert received[2].id == 9
    assert lines == ["skipped a message of 100,001 bytes; its request is unknown"]


async def test_an_endless_message_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error gives the reason."""
    monkeypatch.setattr(upstream_process, "MAX_SKIPPED_BYTES", 1024 * 1024)
    monkeypatch.setattr(program_process, "END_GRACE_S", 0.1)
    with pytest.raises(UpstreamUnavailableError, match="it sends a message of more than 1 MiB"):
        await run_until_output_ends("import sys\nwhile True: sys.stdout.write('x' * 65536)")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            "import sys; sys.exit('no\\x1b[31m key')",
            "its program has ended (exit status 1); its last line: no [31m key",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "its program has ended (signal 9)"),
        ("import os, time; os.close(1); time.sleep(600)", "it closed its output"),
    ],
    ids=["exit", "signal", "closed"],
)
async def test_the_end_reason_replaces_other_errors(program: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It includes the last line of standard error."""
    monkeypatch.setattr(program_process, "END_GRACE_S", 0.3 if "sleep" in program else 30.0)
    with pytest.raises(UpstreamUnavailableError) as ended:
        await run_until_output_ends(program)
    assert str(ended.value) == reason


async def run_until_output_ends(program: str) -> None:
    """Runs the program until its output ends, and then fails, as the SDK does."""
    async with server_process(command(program), lambda _: None, lambda: None) as (inbox, _):
        async for _item in inbox:
            pass
        raise ConnectionError


async def test_a_flood_is_read_at_the_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest waits in the pipe."""
    monkeypatch.setattr(upstream_process, "MESSAGES_PER_S", 5.0)
    program = """while True: print('{"jsonrpc": "2.0", "method": "notifications/x"}', flush=True)"""
    received = 0
    async with server_process(command(program), lambda _: None, lambda: None) as (inbox, _):
        began = time.monotonic()
        async for _item in inbox:
            received += 1
            if received == 13:
                break
    assert time.monotonic() - began > 0.4  # a burst of two seconds, then one message per 0.2 s


async def test_the_end_and_the_last_lines_are_reported() -> None:
    """As soon as its output ends."""
    lines: list[str] = []
    ended = asyncio.Event()
    program = "import sys; sys.stderr.write('line one\\n\\nlast words')"
    async with server_process(command(program), lines.append, ended.set) as (inbox, _):
        async with asyncio.timeout(60):
            await ended.wait()
            while lines != ["line one", "last words"]:
                await asyncio.sleep(0.01)
        assert [item async for item in inbox] == []


async def test_a_server_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Although it reads no input."""
    monkeypatch.setattr(program_process, "END_GRACE_S", 0.1)
    pid = tmp_path / "pid"
    program = (
        "import os, signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    async with server_process(command(program), lambda _: None, lambda: None):
        async with asyncio.timeout(60):
            while not pid.exists() or not pid.read_text():
                await asyncio.sleep(0.01)
    give_up_at = time.monotonic() + 30
    while _is_running(int(pid.read_text())):
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
