"""The start of the daemon: banner, errors and files."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from toold.client import MCPWebSocketClient
from toold.providers.simulator import Simulator

KIMI_KEY = "sim-kimi-key-0123456789abcdef"
GLM_KEY = "sim-glm-key-0123456789abcdef"
FREE_PORTS = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_SIMULATE": "true"}
EVERYBODY = ("--host", "0.0.0.0")  # noqa: S104 - which the daemon must refuse


def complaint(refused: subprocess.CompletedProcess[str]) -> str:
    """The error line of a failed start, without the usage."""
    assert refused.returncode not in {0, None}
    assert refused.stdout == ""
    assert "Traceback" not in refused.stderr
    lines = [line for line in refused.stderr.splitlines() if line and not line.startswith(("Usage: ", "Try "))]
    assert len(lines) == 1, refused.stderr
    return lines[0]


def banner(daemon: Any) -> str:
    """The banner, which is printed a moment after the address file."""
    deadline = time.monotonic() + 20
    while "Try it" not in (log := daemon.logged()) or not log.endswith("\n"):
        assert time.monotonic() < deadline, log
        time.sleep(0.01)
    return str(log)


def test_a_second_start_names_the_first(daemon: Any, command: Any) -> None:
    """One daemon per state directory: the second exits with a line that has the pid and port of the first."""
    line = complaint(command("serve", state=daemon.state, **FREE_PORTS))
    assert f"pid {daemon.process.pid}" in line
    assert f"port {daemon.port}" in line


@pytest.mark.parametrize(
    ("flags", "env", "toml", "named"),
    [
        ((), {"TOOLD_PORT": "70000"}, "", "port (TOOLD_PORT): must be 65535 or less"),
        ((), {"GLM_BASE_URL": "bigmodel"}, "", "glm_base_url (GLM_BASE_URL): must be a URL"),
        ((), {"TOOLD_TOKEN": "fifteen-letters"}, "", "token (TOOLD_TOKEN): must have 16"),
        (("--no-auth", *EVERYBODY), {}, "", "auth (--no-auth): may be off only if host is loopback"),
        ((), {}, "max_runing = 2", "toold.toml: unknown setting 'max_runing'; did you mean 'max_running'?"),
        ((), {}, "port = ", "toold.toml: is not valid TOML"),
        ((), {"TOOLD_DEFAULT_MODEL": "kimi-k9"}, "", "default_model (TOOLD_DEFAULT_MODEL): Unknown model 'kimi-k9'"),
    ],
)
def test_an_invalid_setting_fails_the_start_with_one_line(
    command: Any, tmp_path: Path, flags: tuple[str, ...], env: dict[str, str], toml: str, named: str
) -> None:
    """The line names the setting and its source, and no address file is left."""
    (tmp_path / "toold.toml").write_text(toml)
    line = complaint(command("serve", *flags, **FREE_PORTS | env))
    assert named in line
    assert "fifteen-letters" not in line
    assert not (tmp_path / "state" / "daemon.json").exists()


@pytest.mark.parametrize("port", ["port", "http_port"])
def test_a_port_in_use_is_named(command: Any, port: str) -> None:
    """The error has the number of the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1])
        refused = command("serve", **FREE_PORTS | {f"TOOLD_{port.upper()}": number})
    assert number in complaint(refused)


async def test_without_auth_no_token_is_needed(start_daemon: Any, command: Any) -> None:
    """With auth off on loopback, no token is created, and calls need none."""
    daemon = start_daemon("--no-auth")
    assert not (daemon.state / "token").exists()
    assert "Token      none" in banner(daemon)
    async with daemon.peer(token=None) as peer:
        assert (await peer.call(1, "echo", text="x"))["error"] is None
    assert command("call", "echo", "text=hi", state=daemon.state).stdout == "hi\n"


def test_the_token_file_is_private_and_survives_a_restart(start_daemon: Any) -> None:
    """The file has mode 0600, and the same token at the next start."""
    first = start_daemon()
    assert stat.S_IMODE((first.state / "token").stat().st_mode) == 0o600
    assert len(first.token) >= 32
    assert first.stop() == 0
    assert not (first.state / "daemon.json").exists()
    assert start_daemon().token == first.token


def test_a_configured_token_is_not_written_to_disk(start_daemon: Any) -> None:
    """With TOOLD_TOKEN there is no token file, and the banner does not show the token."""
    daemon = start_daemon(TOOLD_TOKEN="a-token-of-the-operator")
    assert not (daemon.state / "token").exists()
    assert "TOOLD_TOKEN" in banner(daemon)
    assert daemon.token not in daemon.logged()


def test_the_banner_has_addresses_providers_and_an_example(start_daemon: Any) -> None:
    """The banner has address, HTTP port, token path, both simulated providers, the number of tools, and a simulation
    notice.
    """
    daemon = start_daemon()
    text = banner(daemon)
    assert f"ws://127.0.0.1:{daemon.port}/" in text
    assert f"http://127.0.0.1:{daemon.http_port}/" in text
    assert str(daemon.state / "token") in text
    assert daemon.token not in text
    assert re.search(r"Kimi \(Moonshot\)\s+simulated", text)
    assert re.search(r"GLM \(Zhipu\)\s+simulated", text)
    assert re.search(r"Tools +\d+ \(`toold tools` lists them\)", text)
    assert "SIMULATED" in text


@pytest.mark.parametrize("readme", [True, False], ids=["beside a README", "in any other directory"])
@pytest.mark.parametrize("by_flag", [True, False], ids=["state directory by flag", "state directory by environment"])
def test_the_banners_example_runs(start_daemon: Any, tmp_path: Path, readme: bool, by_flag: bool) -> None:
    """A shell in the same directory and environment runs the line, and chat answers."""
    if readme:
        (tmp_path / "README.md").write_text("# A file to talk about\n")
    by = {"TOOLD_STATE_DIR": ""} if by_flag else {}
    daemon = start_daemon(*(["--state-dir", str(tmp_path / "state")] if by_flag else []), **by)
    line = banner(daemon).partition("Try it in a second terminal:\n")[2].splitlines()[0]
    pasted = subprocess.run(line, shell=True, env=daemon.env, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S602 - what a user does
    assert pasted.returncode == 0, pasted.stderr
    assert "imulated" in pasted.stdout
    assert ("A file to talk about" in pasted.stdout) == readme


async def test_one_key_disables_the_simulator(start_daemon: Any) -> None:
    """With any key nothing is simulated; the vendor without a key names the missing variable."""
    async with Simulator() as vendor:
        daemon = start_daemon(simulate=False, KIMI_API_KEY=KIMI_KEY, KIMI_BASE_URL=vendor.kimi_base_url)
        text = banner(daemon)
        assert re.search(r"Kimi \(Moonshot\)\s+real", text)
        assert re.search(r"GLM \(Zhipu\)\s+.*GLM_API_KEY", text)
        assert "SIMULATED" not in text
        async with daemon.peer() as peer:
            answered = await peer.call(1, "chat", prompt="hello")
            assert answered["error"] is None
            assert answered["metadata"]["provider"] == "kimi"
            assert answered["metadata"]["simulated"]  # although the vendor is configured as real
            refused = (await peer.call(2, "chat", prompt="hello", model="glm-4.6"))["error"]
            assert (refused["code"], refused["executed"], refused["retryable"]) == ("SERVICE_UNAVAILABLE", "no", False)
            assert "GLM_API_KEY" in refused["message"]
        assert [seen.vendor for seen in vendor.log] == ["kimi"]
        assert daemon.stop() == 0


async def test_secrets_are_not_logged(start_daemon: Any) -> None:
    """No secret is logged at debug level, with calls, wrong tokens and vendor errors. The SDKs' log lines are
    suppressed.
    """
    wrong = "a-wrong-token-that-was-tried"
    async with Simulator() as vendor:
        daemon = start_daemon(
            simulate=False,
            KIMI_API_KEY=KIMI_KEY,
            KIMI_BASE_URL=vendor.kimi_base_url,
            GLM_API_KEY=GLM_KEY,
            GLM_BASE_URL=vendor.glm_base_url,
            TOOLD_LOG_LEVEL="debug",
            TOOLD_LOG_FORMAT="json",
        )
        client = MCPWebSocketClient("127.0.0.1", daemon.port, wrong)
        assert not await client.connect(max_retries=1)
        async with daemon.peer(features=["stream"]) as peer:
            for model in ("kimi-k2-thinking", "glm-4.6"):
                for number, directives in enumerate(("say=hello", "status=401", "status=500", "garbage")):
                    await peer.call(f"{model}-{number}", "chat", prompt=f"{wrong} [[sim:{directives}]]", model=model)
            await peer.call("raises", "bad_raises")
        assert daemon.stop() == 0
    log = daemon.logged()
    assert "provider failed" in log
    assert "hello refused" in log
    for secret in (daemon.token, wrong, KIMI_KEY, GLM_KEY):
        assert secret not in log
    loggers = {json.loads(line)["logger"] for line in log.splitlines() if line.startswith("{")}
    assert all(name.startswith("toold") for name in loggers), loggers


async def test_a_daemon_starts_after_a_kill(start_daemon: Any, command: Any) -> None:
    """After kill -9 the lock is free, the address file is replaced, and the audit rows remain."""
    first = start_daemon()
    async with first.peer(session_id="before-the-crash") as peer:
        await peer.call(1, "echo", text="x")
        while not (await peer.status())["recent"]:
            pass  # rows are written in groups, some milliseconds later
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    assert command("call", "echo", "text=hi", state=first.state).returncode == 3
    second = start_daemon()
    async with second.peer() as peer:
        assert (await peer.call(1, "echo", text="x"))["error"] is None
        recent = (await peer.status(recent=100))["recent"]
    assert "before-the-crash" in {row["session"] for row in recent}


async def test_tools_cannot_read_the_configuration_file(start_daemon: Any, tmp_path: Path) -> None:
    """The configuration file may contain keys, so it is denied even inside the workspace, under any name."""
    (tmp_path / "work.toml").write_text('default_model = "glm-4.6"\n')
    (tmp_path / "other.toml").write_text('title = "fine"\n')
    daemon = start_daemon("--config", "work.toml")
    async with daemon.peer() as peer:
        frame = await peer.call(1, "chat", prompt="x", files=["work.toml"])
        assert frame["error"]["code"] == "PERMISSION_DENIED"
        assert (await peer.call(2, "chat", prompt="x", files=["other.toml"]))["error"] is None
