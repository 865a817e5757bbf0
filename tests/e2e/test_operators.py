"""An operator's commands against the real daemon: calls, cancel, reload, stop."""

import asyncio
import json
import os
import pty
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

Toold = Callable[..., subprocess.CompletedProcess[str]]

LONG_S = 300.0
"""Longer than any of these tests: a call of this duration was not waited for."""


@pytest.fixture
def toold(command: Any) -> Toold:
    """Runs a command that finds the daemon that ``start_daemon`` starts."""

    def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = command(*arguments, **more)
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def configure(tmp_path: Path) -> Callable[[str], None]:
    """Write the ``toold.toml`` that the daemon reads."""

    def write(text: str) -> None:
        (tmp_path / "toold.toml").write_text(text)

    return write


@pytest.fixture
def unfollowed(tmp_path: Path) -> Iterator[None]:
    """Keep touching ``toold.toml``. The daemon itself reloads only a file that is unchanged for a second, so that only
    the command reloads it.
    """
    done = threading.Event()

    def touch() -> None:
        while not done.wait(0.1):
            with suppress(FileNotFoundError):
                os.utime(tmp_path / "toold.toml")

    writing = threading.Thread(target=touch)
    writing.start()
    yield
    done.set()
    writing.join()


async def logged(daemon: Any, event: str) -> dict[str, Any]:
    """Wait for a log line with this event. Returns the last one."""
    async with asyncio.timeout(30):
        while True:
            lines = [json.loads(line) for line in daemon.logged().splitlines() if line.startswith("{")]
            found = [line for line in lines if line["event"] == event]
            if found:
                line: dict[str, Any] = found[-1]
                return line
            await asyncio.sleep(0.02)


# --- calls and cancel ------------------------------------------------------------------------------------------------


async def test_a_hanging_call_is_listed_and_cancelled(start_daemon: Any, toold: Toold) -> None:
    """A hanging call is listed under its session, without arguments; its caller learns who cancelled it."""
    daemon = start_daemon()
    async with daemon.peer(session_id="an-editor", features=["ack"]) as peer:
        secret = {"prompt": "[[sim:hang]] a private question", "model": "glm-4.6"}
        await peer.send(op="call_tool", request_id=1, name="chat", arguments=secret)
        await peer.until("call_tool_ack", 1)
        shown = await asyncio.to_thread(toold, "calls")
        assert shown.returncode == 0
        assert "private" not in shown.stdout
        (line,) = [line.split() for line in shown.stdout.splitlines() if line.startswith("an-editor")]
        assert line[1:3] == ["local", "chat"]
        (call,) = json.loads((await asyncio.to_thread(toold, "calls", "--json")).stdout)["running"]
        assert call["id"] in line

        ended = await asyncio.to_thread(toold, "cancel", call["id"].partition("-")[2])
        assert ended.returncode == 0
        assert call["id"] in ended.stdout
        error = (await peer.until("call_tool_res", 1))["error"]
        assert error["code"] == "CANCELLED"
        assert "operator" in error["message"]
        repeat = await asyncio.to_thread(toold, "cancel", call["id"])
        assert (repeat.returncode, repeat.stdout) == (1, "")
        assert "toold calls" in repeat.stderr


async def test_a_child_call_is_cancelled_by_its_id(start_daemon: Any, toold: Toold) -> None:
    """The id contains a slash; the parent and the other child calls continue."""
    daemon = start_daemon()
    async with daemon.peer(features=["ack"]) as peer:
        items = [{"text": "stays"}, {"text": "goes", "delay_ms": 1000 * LONG_S}]
        await peer.send(
            op="call_tool", request_id=1, name="execute_batch", arguments={"tool_name": "sim_effect", "items": items}
        )
        effects = Path(daemon.state / "sim_effect.log")
        async with asyncio.timeout(20):
            while not (effects.exists() and "goes" in effects.read_text()):
                await asyncio.sleep(0.02)
        running = json.loads((await asyncio.to_thread(toold, "calls", "--json")).stdout)["running"]
        child = next(call["id"] for call in running if call["tool"] == "sim_effect" and call["id"].endswith("/1"))
        ended = await asyncio.to_thread(toold, "cancel", child)
        assert (ended.returncode, ended.stderr) == (0, "")
        answer = (await peer.until("call_tool_res", 1))["structured"]
        assert (answer["succeeded"], answer["errors"][0]["error"]["code"]) == (1, "CANCELLED")


def test_operator_requests_need_the_token(daemon: Any) -> None:
    """Operator requests on the real port are rejected without a token and with a wrong one."""
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        url = f"http://127.0.0.1:{daemon.http_port}/operator/calls"
        assert httpx.get(url, headers=headers, trust_env=False).status_code == 401


# --- reload ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unfollowed")
def test_reload_applies_changes_and_names_the_rest(
    start_daemon: Any, toold: Toold, configure: Callable[[str], None]
) -> None:
    """Flags and environment variables still override the file, and a wrong file changes nothing."""
    configure("max_running = 5\n")
    daemon = start_daemon(TOOLD_MAX_WAITING="50")
    assert toold("reload").stdout == "unchanged\n"

    configure('max_running = 7\nmax_waiting = 70\nport = 9\nhost = "::1"\nlog_level = "debug"\n')
    reloaded = toold("reload")
    # The port comes from a flag, max_waiting from a variable.
    assert reloaded.stdout == "reloaded: max_running, log_level\nneeds a restart: host\n"
    assert daemon.process.poll() is None

    configure("max_running = 8\nmax_waitin = 3\n")
    refused = toold("reload")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "did you mean 'max_waiting'?" in refused.stderr
    limits = json.loads(toold("status", "--json").stdout)["limits"]
    assert (limits["running"]["limit"], limits["max_waiting"]) == (7, 50)


async def test_sighup_reloads_and_logs_the_outcome(start_daemon: Any, configure: Callable[[str], None]) -> None:
    """SIGHUP works like `toold reload`; an invalid configuration is logged with the error of a failed start."""
    daemon = start_daemon()
    configure('log_level = "warning"\nmax_running = 0\n')
    daemon.process.send_signal(signal.SIGHUP)
    refused = await logged(daemon, "the new configuration is refused; the old one stays in effect")
    assert refused["reason"] == "max_running (toold.toml): must be 1 or more"
    configure('max_running = 3\nhost = "::1"\n')
    daemon.process.send_signal(signal.SIGHUP)
    line = await logged(daemon, "reloaded")
    assert (line["reloaded"], line["needs_restart"]) == (["max_running"], ["host"])
    assert await asyncio.to_thread(daemon.stop) == 0


@pytest.mark.usefixtures("unfollowed")
async def test_a_reloaded_log_level_applies_immediately(
    start_daemon: Any, toold: Toold, configure: Callable[[str], None]
) -> None:
    """Existing loggers follow the new level."""
    daemon = start_daemon()
    async with daemon.peer():
        pass
    await logged(daemon, "disconnected")
    configure('log_level = "error"\n')
    assert (await asyncio.to_thread(toold, "reload")).stdout == "reloaded: log_level\n"
    before = daemon.logged().count("connected")
    async with daemon.peer() as peer:
        await peer.call(1, "echo", text="x")
    assert await asyncio.to_thread(daemon.stop) == 0
    assert daemon.logged().count("connected") == before


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed, which makes the certificate")
def test_reload_applies_a_renewed_certificate(start_daemon: Any, toold: Toold, tmp_path: Path) -> None:
    """New connections on the same port get the renewed certificate."""

    def renew() -> str:
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += [
            "-keyout",
            str(tmp_path / "key.pem"),
            "-out",
            str(tmp_path / "cert.pem"),
            "-days",
            "2",
            "-subj",
            "/CN=x",
        ]
        subprocess.run(command, check=True, capture_output=True)
        return (tmp_path / "cert.pem").read_text()

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", daemon.port))

    first = renew()
    daemon = start_daemon(TOOLD_TLS_CERT=str(tmp_path / "cert.pem"), TOOLD_TLS_KEY=str(tmp_path / "key.pem"))
    assert shown() == first
    second = renew()
    assert toold("reload").stdout == "reloaded: the TLS certificate\n"
    assert shown() == second != first


# --- stop ------------------------------------------------------------------------------------------------------------


async def test_stop_drains_and_ends_in_time(start_daemon: Any, toold: Toold) -> None:
    """Clients are notified, a hanging call is answered, and the command returns when the daemon has ended."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="0.2")
    async with daemon.peer(features=["ack", "going_away"]) as peer:
        await peer.send(op="call_tool", request_id=1, name="bad_ignores_cancel", arguments={"seconds": LONG_S})
        await peer.until("call_tool_ack", 1)
        stopping = asyncio.create_task(asyncio.to_thread(toold, "stop"))
        assert (await peer.until("going_away"))["deadline_ms"] == 100
        assert (await peer.until("call_tool_res", 1))["error"]["code"] == "SERVICE_UNAVAILABLE"
        stopped = await stopping
    assert stopped.returncode == 0
    assert f"(pid {daemon.process.pid}), within 0.2 s" in stopped.stdout
    assert stopped.stdout.splitlines()[-1].startswith("Stopped after ")
    assert await asyncio.to_thread(daemon.process.wait, timeout=30) == 0
    assert not daemon.tracebacks()
    assert toold("stop").returncode == 3


async def test_a_second_stop_keeps_the_grace_period(start_daemon: Any, toold: Toold) -> None:
    """A second `toold stop` waits too, and the running call is answered."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S=str(LONG_S))
    async with daemon.peer(features=["ack", "going_away"]) as peer:
        await peer.send(op="call_tool", request_id=1, name="bad_hangs", arguments={"seconds": LONG_S})
        await peer.until("call_tool_ack", 1)
        first = asyncio.create_task(asyncio.to_thread(toold, "stop"))
        await peer.until("going_away")
        await asyncio.sleep(0.6)  # longer than a signal's echo
        words = [sys.executable, "-m", "toold", "stop"]
        second = await asyncio.create_subprocess_exec(*words, env=daemon.env, stdout=subprocess.PIPE)
        assert second.stdout is not None
        assert b"already stopping" in await second.stdout.readline()
        await peer.send(op="cancel", request_id=1)
        assert (await peer.until("call_tool_res", 1))["error"]["code"] == "CANCELLED"
        assert (await first).returncode == 0
        assert await second.wait() == 0
    assert await asyncio.to_thread(daemon.process.wait, timeout=30) == 0


@pytest.mark.process
def test_closing_the_terminal_stops_the_daemon(tmp_path: Path) -> None:
    """A daemon started in a terminal stops cleanly when the terminal closes."""
    take_terminal = (
        "import fcntl, os, signal, sys, termios\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # ignored if the tests run under nohup
        "os.setsid()\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    )
    state = tmp_path / "state"
    flags = ["--simulate", "--port", "0", "--http-port", "0", "--state-dir", str(state), "--log-format", "json"]
    words = [sys.executable, "-c", take_terminal, "-m", "toold", "serve", *flags]
    ours, its = pty.openpty()
    try:
        with subprocess.Popen(words, stdin=its, stdout=its, stderr=its, cwd=tmp_path) as process:
            os.close(its)
            printed = b""
            while b"Try it" not in printed:
                printed += os.read(ours, 4096)
            os.close(ours)
            ours = -1
            assert process.wait(timeout=60) == 0
    finally:
        if ours >= 0:
            os.close(ours)
    assert (state / "toold.db").exists()
    assert not (state / "daemon.json").exists()
