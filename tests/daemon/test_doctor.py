"""The doctor: what it looks at, what it says, and that it changes nothing."""

import asyncio
import importlib.metadata
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from toold.daemon import doctor
from toold.daemon.doctor import Check, diagnose
from toold.daemon.setting_sources import load_settings
from toold.daemon.settings import Settings
from toold.daemon.state import StateFolder
from toold.daemon.transports.http import side_app
from toold.protocol.rendezvous import Address
from toold.serving import HttpServer
from toold.store.schema import STEPS, open_database

SECRET = "sk-verysecretverysecretverysecret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxy this machine has, the tests talk to loopback alone."""
    monkeypatch.setattr("urllib.request.getproxies", dict)


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


def settings_with(cwd: Path, state_dir: Path, **env: str) -> Settings:
    ports = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(state_dir)}
    return load_settings({}, env=ports | env, cwd=cwd)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def address(http_port: int, *, pid: int | None = None, port: int = 1) -> Address:
    return Address(
        pid=pid or os.getpid(), host="127.0.0.1", port=port, http_port=http_port, tls=False, auth=True, version="9"
    )


@pytest.fixture
async def health() -> dict[str, object]:
    return {"status": "ready"}


@pytest.fixture
async def running(state_dir: Path, health: dict[str, object]) -> AsyncIterator[Address]:
    """What a running daemon shows: its state folder and its HTTP port."""
    app = side_app(health=lambda: health, metrics=bytes, loopback_only=True)
    server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await server.start()
    with StateFolder(state_dir) as state:
        state.load_or_create_token()
        state.write_address(address(server.port))
        yield address(server.port)
    await server.close()


def named(checks: list[Check], name: str) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


async def test_a_fresh_machine_is_well_and_stays_untouched(tmp_path: Path, state_dir: Path) -> None:
    """Before the first start nothing is wrong, and looking makes neither folder nor file."""
    checks = await diagnose(settings_with(tmp_path, state_dir), env={})
    assert {check.status for check in checks} <= {"ok", "warn"}
    assert "made at the first start" in named(checks, "state folder").message
    assert list(tmp_path.iterdir()) == []


async def test_every_complaint_has_its_remedy(tmp_path: Path, state_dir: Path, taken_port: int) -> None:
    """What is not ok says what to do; what is ok does not."""
    state_dir.write_text("a file in the way")
    env = {"TOOLD_SIMULATE": "false", "TOOLD_HTTP_PORT": str(taken_port)}
    checks = await diagnose(settings_with(tmp_path, state_dir, **env), env={"TOOLD_PROT": "1"})
    assert {check.name for check in checks if check.status != "ok"} >= {
        "environment",
        "kimi key",
        "glm key",
        "http_port",
        "state folder",
    }
    for check in checks:
        assert (check.remedy is None) == (check.status == "ok"), check


async def test_no_check_shows_a_secret(tmp_path: Path, state_dir: Path, taken_port: int) -> None:
    """Keys and tokens are told by the variable that sets them, never by value, and nothing of them is sent."""
    env = {
        "MOONSHOT_API_KEY": SECRET,
        "TOOLD_TOKEN": SECRET,
        "KIMI_BASE_URL": f"http://127.0.0.1:{taken_port}/v1",
    }
    checks = await diagnose(settings_with(tmp_path, state_dir, **env), env=env)
    assert named(checks, "kimi key").message == "set by MOONSHOT_API_KEY"
    assert SECRET not in repr(checks)


def test_python_versions() -> None:
    """Python before 3.11 is too old."""
    assert doctor.python_version((3, 11, 0)).status == "ok"
    assert doctor.python_version((3, 10, 9)).status == "fail"


def test_misspelt_variables() -> None:
    """A variable that looks like ours and is not gets the name that was probably meant."""
    (check,) = doctor.unknown_variables({"TOOLD_PROT": "1", "TOOLD_PORT": "2", "TOOLD_CONFIG": "x", "PATH": ""})
    assert check.message == "TOOLD_PROT is no setting and has no effect; did you mean 'TOOLD_PORT'?"


# --- the vendors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "status", "message"),
    [
        ({}, "ok", "not set; the simulator answers for glm"),
        ({"KIMI_API_KEY": SECRET}, "warn", "not set: models of glm cannot be asked"),
        ({"ZHIPUAI_API_KEY": SECRET}, "ok", "set by ZHIPUAI_API_KEY"),
        ({"GLM_API_KEY": SECRET, "TOOLD_SIMULATE": "1"}, "ok", "set by GLM_API_KEY (not used: simulated)"),
    ],
)
def test_keys(tmp_path: Path, state_dir: Path, env: dict[str, str], status: str, message: str) -> None:
    """Whether a key is set, by which variable, and whether it will be used."""
    _, glm = doctor.keys(settings_with(tmp_path, state_dir, **env), env)
    assert (glm.status, glm.message) == (status, message)


def test_a_key_of_the_file(tmp_path: Path, state_dir: Path) -> None:
    """A key that no variable sets came from toold.toml."""
    (tmp_path / "toold.toml").write_text(f"glm_api_key = '{SECRET}'")
    _, glm = doctor.keys(settings_with(tmp_path, state_dir), {})
    assert glm.message == "set by toold.toml"


def test_sdks(tmp_path: Path, state_dir: Path) -> None:
    """The SDK that carries a vendor's calls is named with its version; plain HTTP where that was chosen."""
    kimi, glm = doctor.sdks(settings_with(tmp_path, state_dir, TOOLD_GLM_SDK="http"))
    assert kimi.message.startswith("openai ")
    assert glm.message.startswith("httpx ")


def test_an_sdk_that_is_missing(tmp_path: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no SDK is installed plain HTTP is used, which is told; where that one was asked for, it is an error."""

    def version(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.version", version)
    kimi, glm = doctor.sdks(settings_with(tmp_path, state_dir, TOOLD_GLM_SDK="zai"))
    assert (kimi.status, kimi.remedy) == ("warn", "run pip install 'toold[kimi]'")
    assert (glm.status, glm.remedy) == ("fail", "run pip install 'toold[zai]', or set glm_sdk to auto")


async def test_a_vendor_that_can_be_reached(taken_port: int) -> None:
    """A host that takes the connection is reachable; nothing is sent to it."""
    check = await doctor.reach("kimi", f"http://127.0.0.1:{taken_port}/v1")
    assert (check.status, check.message) == ("ok", f"127.0.0.1:{taken_port} takes connections")


async def test_a_vendor_that_cannot_be_reached() -> None:
    """A port where nobody listens is told with host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    check = await doctor.reach("glm", f"http://127.0.0.1:{port}/")
    assert check.status == "fail"
    assert f"127.0.0.1:{port}" in check.message
    assert "glm_base_url" in (check.remedy or "")


async def test_a_vendor_that_does_not_answer(taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that takes the connection and never ends the TLS handshake is given up after the bound."""
    monkeypatch.setattr(doctor, "REACH_TIMEOUT_S", 0.05)
    check = await doctor.reach("glm", f"https://127.0.0.1:{taken_port}/")
    assert check.status == "fail"
    assert "did not answer within 0.05 s" in check.message


async def test_a_vendor_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a proxy carries the requests, a connection of our own would say nothing."""
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy"})
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda _: False)
    assert "skipped" in (await doctor.reach("glm", "https://192.0.2.1/")).message


# --- this machine ----------------------------------------------------------------------------------------------------


def test_ports(taken_port: int) -> None:
    """A port is free, chosen later, ours already, or somebody else's."""
    assert doctor.port("127.0.0.1", 0, setting="port", ours=None).status == "ok"
    taken = doctor.port("127.0.0.1", taken_port, setting="http_port", ours=None)
    assert (taken.status, taken.remedy) == ("fail", "stop that program or choose another with --http-port")
    held = doctor.port("127.0.0.1", taken_port, setting="http_port", ours=address(taken_port))
    assert (held.status, held.message) == ("ok", f"{taken_port} is held by the running daemon (pid {os.getpid()})")
    elsewhere = doctor.port("192.0.2.1", taken_port, setting="port", ours=None)
    assert (elsewhere.status, elsewhere.remedy) == ("fail", "choose another --port or --host")


def test_a_good_state_folder(state_dir: Path) -> None:
    """Folder and token that the daemon made are in order."""
    with StateFolder(state_dir) as state:
        state.load_or_create_token()
    assert [check.status for check in doctor.state_folder(state_dir, token_given=False)] == ["ok", "ok"]


def test_an_open_state_folder(state_dir: Path) -> None:
    """Permissions that are too wide are told with the command that mends them, and not mended here."""
    state_dir.mkdir()
    state_dir.chmod(0o777)
    (state_dir / "token").write_text("t" * 40)
    (state_dir / "token").chmod(0o644)
    folder, token = doctor.state_folder(state_dir, token_given=False)
    assert (folder.status, folder.remedy) == ("warn", f"run: chmod go-w {state_dir}")
    assert token.status == "warn"
    assert state_dir.stat().st_mode & 0o777 == 0o777


def test_a_short_token(state_dir: Path) -> None:
    """A token file that cannot hold a token is told, unless the token comes from elsewhere."""
    state_dir.mkdir(mode=0o700)
    (state_dir / "token").write_text("short")
    (state_dir / "token").chmod(0o600)
    assert doctor.state_folder(state_dir, token_given=False)[1].status == "fail"
    assert doctor.state_folder(state_dir, token_given=True)[1].status == "ok"


def test_databases(tmp_path: Path) -> None:
    """A database is none yet, good, newer than this toold, or no database."""
    path = tmp_path / "toold.db"
    assert doctor.database(path).message == "is made at the first start"
    open_database(path).close()
    assert doctor.database(path).status == "ok"
    open_database(path, (*STEPS, "CREATE TABLE later (x)")).close()
    assert "newer toold" in (doctor.database(path).remedy or "")
    path.write_text("no database at all, " * 100)
    broken = doctor.database(path)
    assert broken.status == "fail"
    assert "move the file away" in (broken.remedy or "")


async def test_a_running_daemon(tmp_path: Path, state_dir: Path, running: Address) -> None:
    """The daemon that runs here is asked whether it is ready."""
    checks = await diagnose(settings_with(tmp_path, state_dir), env={})
    assert named(checks, "daemon") == Check("daemon", "ok", f"pid {running.pid} on port 1 is ready (version 9)")


async def test_a_daemon_that_takes_no_calls(running: Address, health: dict[str, object]) -> None:
    """The reasons of a daemon that is not ready are told."""
    health.update(status="draining", reasons=["the daemon stops"])
    check = await doctor.daemon(running)
    assert (check.status, check.message) == ("warn", f"pid {running.pid} on port 1 takes no calls: the daemon stops")


async def test_a_daemon_that_hangs(taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that lives and does not answer is told apart from one that has gone."""
    monkeypatch.setattr(doctor, "REACH_TIMEOUT_S", 0.05)
    check = await doctor.daemon(address(taken_port))
    assert check.status == "fail"
    assert f"kill {os.getpid()}" in (check.remedy or "")


async def test_a_daemon_that_crashed() -> None:
    """An address whose process is gone is the trace of a crash, which the next start removes."""
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    check = await doctor.daemon(address(port, pid=process.pid))
    assert (check.status, check.remedy) == ("warn", "start it again: that cleans up")


async def test_another_program_on_the_daemons_port() -> None:
    """What answers with something else is not our daemon."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps("hello")
        writer.write(f"HTTP/1.1 500 No\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        check = await doctor.daemon(address(server.sockets[0].getsockname()[1]))
    assert (check.status, check.message.endswith("no reason given")) == ("warn", True)
