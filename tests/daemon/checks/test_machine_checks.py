"""The doctor's checks of this machine."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from toold.daemon.checks import machine_checks
from toold.daemon.checks.check_result import CheckResult
from toold.daemon.persistence.state_directory import StateDirectory, read_address
from toold.daemon.transports.http_port import side_app
from toold.protocol.daemon_address import DaemonAddress
from toold.serving import HttpServer
from toold.store import DAMAGE_REMEDY
from toold.store.sqlite.store_schema import STEPS, open_database


def address(http_port: int, *, pid: int | None = None, port: int = 1) -> DaemonAddress:
    return DaemonAddress(
        pid=pid or os.getpid(), host="127.0.0.1", port=port, http_port=http_port, tls=False, auth=True, version="9"
    )


@pytest.fixture
async def health() -> dict[str, object]:
    return {"status": "ready"}


@pytest.fixture
async def running(state_dir: Path, health: dict[str, object]) -> AsyncIterator[DaemonAddress]:
    """A running daemon's state directory and HTTP port."""
    app = side_app(
        health=lambda: health,
        agent_health=lambda: None,
        metrics=bytes,
        mcp=Response(),
        sse=Response(),
        openai=Response(),
        rest=Response(),
        a2a=Response(),
        platform=Response(),
        registry=Response(),
        is_registry=lambda *_: False,
        resource=lambda _: None,
        operator=Response(),
        loopback_only=True,
        allowed_origins=(),
    )
    server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await server.start()
    with StateDirectory(state_dir) as state:
        state.load_or_create_token()
        state.write_address(address(server.port))
        yield address(server.port)
    await server.close()


def test_ports(taken_port: int) -> None:
    """A port is free, chosen later, ours already, or somebody else's."""
    assert machine_checks.port("127.0.0.1", 0, setting="port", ours=None).status == "ok"
    taken = machine_checks.port("127.0.0.1", taken_port, setting="http_port", ours=None)
    assert (taken.status, taken.remedy) == (
        "fail",
        "stop the program that uses it, or set another port with --http-port",
    )
    held = machine_checks.port("127.0.0.1", taken_port, setting="http_port", ours=address(taken_port))
    assert (held.status, held.message) == ("ok", f"{taken_port} is used by the running daemon (pid {os.getpid()})")
    elsewhere = machine_checks.port("192.0.2.1", taken_port, setting="port", ours=None)
    assert (elsewhere.status, elsewhere.remedy) == ("fail", "set another --port or --host")


def test_a_good_state_directory(state_dir: Path) -> None:
    """Directory and token that the daemon made are in order."""
    with StateDirectory(state_dir) as state:
        state.load_or_create_token()
    assert [check.status for check in machine_checks.state_directory(state_dir, token_given=False)] == ["ok", "ok"]


def test_an_open_state_directory(state_dir: Path) -> None:
    """Open permissions are reported with the command that fixes them, and not changed."""
    state_dir.mkdir()
    state_dir.chmod(0o777)
    (state_dir / "token").write_text("t" * 40)
    (state_dir / "token").chmod(0o644)
    directory, token = machine_checks.state_directory(state_dir, token_given=False)
    assert (directory.status, directory.remedy) == ("warn", f"run: chmod go-w {state_dir}")
    assert token.status == "warn"
    assert state_dir.stat().st_mode & 0o777 == 0o777


def test_a_short_token(state_dir: Path) -> None:
    """An unusable token file is reported, unless the token comes from elsewhere."""
    state_dir.mkdir(mode=0o700)
    (state_dir / "token").write_text("short")
    (state_dir / "token").chmod(0o600)
    assert machine_checks.state_directory(state_dir, token_given=False)[1].status == "fail"
    assert machine_checks.state_directory(state_dir, token_given=True)[1].status == "ok"


def test_databases(tmp_path: Path) -> None:
    """A database file can be missing, valid, newer than this toold, or not a database."""
    path = tmp_path / "toold.db"
    assert machine_checks.database(path).message == "will be created at the first start"
    open_database(path).close()
    assert machine_checks.database(path).status == "ok"
    with closing(open_database(path)) as connection:
        connection.execute("CREATE TRIGGER spy AFTER INSERT ON call BEGIN SELECT 1; END")
    changed = machine_checks.database(path)
    assert (changed.status, "trigger 'spy' (added)" in changed.message) == ("fail", True)
    open_database(path, (*STEPS, "CREATE TABLE later (x)")).close()
    assert "newer toold" in (machine_checks.database(path).remedy or "")
    path.write_text("no database at all, " * 100)
    broken = machine_checks.database(path)
    assert broken.status == "fail"
    assert "move the file and audit.key away" in (broken.remedy or "")


def test_a_damaged_database(tmp_path: Path, damage: Callable[..., None]) -> None:
    """A page that is not what SQLite wrote is found before a call needs it, and the doctor says what to do."""
    path = tmp_path / "toold.db"
    open_database(path).close()
    damage(path, "session")
    check = machine_checks.database(path)
    assert (check.status, check.remedy) == ("fail", DAMAGE_REMEDY)
    assert f"{path} is damaged" in check.message


async def test_a_daemon_with_problems(running: DaemonAddress, health: dict[str, object]) -> None:
    """It accepts calls, and its problems are reported."""
    health.update(problems=["the database is damaged", "a tool is omitted"])
    check = await machine_checks.daemon(running)
    assert check.status == "warn"
    assert check.message.endswith("has problems: the database is damaged; a tool is omitted")


async def test_a_running_daemon(state_dir: Path, running: DaemonAddress) -> None:
    """The daemon that runs here is asked whether it is ready."""
    check = await machine_checks.daemon(read_address(state_dir))
    assert check == CheckResult("daemon", "ok", f"pid {running.pid} on port 1 is ready (version 9)")


async def test_a_daemon_that_accepts_no_calls(running: DaemonAddress, health: dict[str, object]) -> None:
    """The reasons of a daemon that is not ready are reported."""
    health.update(status="draining", reasons=["the daemon stops"])
    check = await machine_checks.daemon(running)
    assert (check.status, check.message) == ("warn", f"pid {running.pid} on port 1 accepts no calls: the daemon stops")


async def test_a_daemon_that_hangs(taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A live process that does not answer is distinguished from one that has exited."""
    monkeypatch.setattr(machine_checks, "ANSWER_TIMEOUT_S", 0.05)
    check = await machine_checks.daemon(address(taken_port))
    assert check.status == "fail"
    assert f"kill {os.getpid()}" in (check.remedy or "")


@pytest.mark.process
async def test_a_daemon_that_crashed() -> None:
    """An address whose process is gone is the trace of a crash, which the next start removes."""
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    check = await machine_checks.daemon(address(port, pid=process.pid))
    assert (check.status, check.remedy) == ("warn", "start it again, which cleans up")


async def test_another_program_on_the_daemons_port() -> None:
    """A program with another answer is not the daemon."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps("hello")
        writer.write(f"HTTP/1.1 500 No\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        check = await machine_checks.daemon(address(server.sockets[0].getsockname()[1]))
    assert (check.status, check.message.endswith("no reason given")) == ("warn", True)


def test_a_low_limit_of_open_files(settings_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning says how many connections remain, and which limit all of them need."""
    assert machine_checks.open_files(settings_with(TOOLD_MAX_CONNECTIONS="10")).status == "ok"
    monkeypatch.setattr(machine_checks, "reachable_limit", lambda _: 4096)
    check = machine_checks.open_files(settings_with())
    assert check.status == "warn"
    assert check.message == (
        "the hard limit of open files is 4096, so 1568 connections per port are accepted instead of 5000"
    )
    assert "raise the limit to 11536" in (check.remedy or "")
