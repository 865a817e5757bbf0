"""``serve``: its banner, and its errors if it cannot start. tests/e2e tests signals and the end."""

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from toold.daemon.config.settings import Settings
from toold.daemon.exit_codes import EXIT_CANNOT_START
from toold.daemon.lifecycle import running
from toold.daemon.persistence.state_directory import StateDirectory
from toold.daemon.serve import banner, run
from toold.tools import EFFECT_LOG, load_registry, simulated_tools

NO_SDKS = {"TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http", "TOOLD_GRACE_PERIOD_S": "0.1"}


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[Settings], str]:
    """Run with settings that cannot start, and return stderr. The test process keeps its own logging."""
    # By module name: the package's `run` is the function.
    monkeypatch.setattr(import_module("toold.daemon.serve"), "set_up_logging", lambda *_: None)

    def attempt(settings: Settings) -> str:
        assert run(settings) == EXIT_CANNOT_START
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    return attempt


def in_one_line(message: str) -> bool:
    return message.startswith("toold: cannot start: ") and message.endswith("\n") and message.count("\n") == 1


def test_a_taken_port_is_one_line(refused: Any, settings_with: Any, taken_port: int) -> None:
    """With the number of the port."""
    message = refused(settings_with(TOOLD_SIMULATE="true", TOOLD_PORT=str(taken_port)))
    assert in_one_line(message)
    assert str(taken_port) in message


def test_a_directory_that_is_taken_is_one_line(refused: Any, settings_with: Any, state_dir: Path) -> None:
    """With the pid of the owner, and how to use another directory."""
    with StateDirectory(state_dir):
        message = refused(settings_with())
    assert in_one_line(message)
    assert "TOOLD_STATE_DIR" in message


def test_a_file_that_is_not_a_database_is_one_line(refused: Any, settings_with: Any, state_dir: Path) -> None:
    """With what to do about the file."""
    state_dir.mkdir(mode=0o700)
    (state_dir / "toold.db").write_text("this is no database, and long enough to be read as one\n" * 100)
    message = refused(settings_with())
    assert in_one_line(message)
    assert "toold.db" in message


def test_a_database_of_a_newer_toold_is_one_line(refused: Any, settings_with: Any, state_dir: Path) -> None:
    """The error is one line, and the database is unchanged."""
    state_dir.mkdir(mode=0o700)
    connection = sqlite3.connect(state_dir / "toold.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    message = refused(settings_with())
    assert in_one_line(message)
    assert "999" in message


# --- the banner ------------------------------------------------------------------------------------------------------


@pytest.fixture
def printed(settings_with: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state_dir: Path) -> Any:
    """``await printed(**environment)``: the banner of a daemon that was started in the test's directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLD_STATE_DIR", str(state_dir))

    async def start(**env: str) -> str:
        async with running(settings_with(**NO_SDKS | env)) as daemon:
            return banner(daemon)

    return start


def example(text: str) -> str:
    """The line to paste, without the path of the command."""
    before, call, arguments = text.splitlines()[-1].strip().partition("toold call ")
    assert call
    return before.rpartition(" ")[0] + arguments


async def test_the_banner_has_addresses_vendors_and_tools(printed: Any, state_dir: Path) -> None:
    """Addresses, the token's file and not the token, each provider, the tools, and that all is simulated."""
    text = await printed()
    assert "ws://127.0.0.1:" in text
    assert "http://127.0.0.1:" in text
    assert re.search(r"  MCP        http://127\.0\.0\.1:\d+/mcp ", text)
    assert str(state_dir / "token") in text
    assert (state_dir / "token").read_text().strip() not in text
    assert text.count("  simulated") == 2
    number = len(load_registry(simulated_tools(state_dir / EFFECT_LOG)).tools)
    assert f"  Tools      {number} (`toold tools` lists them)\n" in text
    assert "  Model      glm-4.7-flash, free (the best value; default_model sets another)\n" in text
    assert "SIMULATED" in text


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"TOOLD_TOKEN": "the-operators-own-token"}, "from the settings (TOOLD_TOKEN)"),
        ({"TOOLD_AUTH": "false"}, "none: authentication is off"),
    ],
)
async def test_the_banner_says_where_the_token_is(printed: Any, env: dict[str, str], words: str) -> None:
    """It never shows the token itself."""
    text = await printed(**env)
    assert words in text
    assert "the-operators-own-token" not in text


async def test_the_banner_names_the_model_and_the_new_settings(printed: Any) -> None:
    """The default model with its price, and a line for each variable of an earlier server."""
    text = await printed(DEFAULT_MODEL="kimi-k3", DISABLED_TOOLS="docgen")
    assert "  Model      kimi-k3, 3 in, 15 out USD per million tokens (set by default_model)\n" in text
    assert "  Note       DEFAULT_MODEL is read as default_model; write default_model or TOOLD_DEFAULT_MODEL\n" in text
    assert text.count("  Note       ") == 2


async def test_the_banner_distinguishes_real_and_missing_vendors(printed: Any) -> None:
    """With one key nothing is simulated, and the other vendor's line names the setting to set."""
    text = await printed(KIMI_API_KEY="a-key-of-the-operator")
    assert "  real" in text
    assert "GLM_API_KEY" in text
    assert "SIMULATED" not in text
    assert "a-key-of-the-operator" not in text


async def test_the_banner_shows_what_is_configured(printed: Any) -> None:
    """With a provider in toold.toml, nothing is said of Kimi and GLM without keys; a provider without its key is."""
    ollama = {"TOOLD_PROVIDERS__LOCAL__TYPE": "ollama", "TOOLD_PROVIDERS__LOCAL__DEFAULT_MODEL": "qwen3:8b"}
    text = await printed(**ollama, TOOLD_PROVIDERS__X__TYPE="xai")
    assert "  local            real" in text
    assert "The provider x has no key: the variable XAI_API_KEY is not set" in text
    assert "local/qwen3:8b, price unknown (the default of local)" in text
    assert "Kimi" not in text
    assert "GLM" not in text


async def test_the_example_uses_the_readme_if_there_is_one(printed: Any, tmp_path: Path) -> None:
    """Else it says hello: a file that is not there, or outside the workspace, would be an error."""
    assert example(await printed()) == "chat prompt=Hello"
    (tmp_path / "README.md").write_text("# Here")
    assert example(await printed()) == 'chat prompt="What is in this file?" files=README.md'
    (tmp_path / "work").mkdir()
    assert example(await printed(TOOLD_WORKSPACE=str(tmp_path / "work"))) == "chat prompt=Hello"


async def test_the_example_needs_no_vendor_if_none_is_available(printed: Any) -> None:
    """Without keys and without the simulator chat could only fail."""
    assert example(await printed(TOOLD_SIMULATE="false")) == "echo text=Hello"


async def test_commands_name_a_state_directory_that_is_not_the_default(printed: Any, tmp_path: Path) -> None:
    """One that came by flag or file, quoted for the shell; the usual one is not named."""
    named = f"TOOLD_STATE_DIR='{tmp_path / 'an odd one'}' "
    text = await printed(TOOLD_STATE_DIR=str(tmp_path / "an odd one"))
    assert named in text.splitlines()[-1]
    assert f"(`{named}toold token` prints it)" in text
    assert "(`toold token` prints it)" in await printed()


async def test_the_example_names_the_command_of_this_interpreter(
    printed: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    """Relative where that is shorter, and quoted for the shell."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    assert "'my env/bin/toold' call" in (await printed()).splitlines()[-1]


BLOCKED = """
import asyncio, signal, time
from toold.daemon.serve import _Stop

async def main():
    stop = _Stop(asyncio.get_running_loop(), within_s=0.1)
    signal.signal(signal.SIGTERM, stop.on_signal)
    print("blocked", flush=True)
    time.sleep(60)

asyncio.run(main())
"""


@pytest.mark.process
def test_a_blocked_loop_does_not_delay_the_exit() -> None:
    """The process ends when its time is over, and says why; the exit code is that of the signal."""
    with subprocess.Popen(
        [sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "blocked\n"
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
        assert "blocked" in process.stderr.read()


HANGING_EXIT = """
import asyncio, atexit, time
from toold.daemon.serve import _leave

async def endless():
    try:
        yield
    finally:
        await asyncio.sleep(600)

async def main():
    generator = endless()
    await anext(generator)
    await _leave()

atexit.register(time.sleep, 600)
asyncio.run(main())
"""


@pytest.mark.process
def test_the_exit_waits_for_no_library() -> None:
    """Neither for an asynchronous generator that does not end, nor for an exit handler: Python would wait for both."""
    with subprocess.Popen([sys.executable, "-c", HANGING_EXIT]) as process:
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()


FLUSHED = """
import contextlib
import sys
from toold.daemon.serve import _flush_outputs

sys.stdin.read()
with contextlib.suppress(OSError):
    print("the banner", flush=True)
_flush_outputs()
"""


@pytest.mark.process
def test_output_to_a_closed_terminal_is_dropped() -> None:
    """A daemon whose terminal is closed with unwritten output exits with 0; Python's default is 120."""
    with subprocess.Popen([sys.executable, "-c", FLUSHED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.close()
        process.stdin.close()
        assert process.wait(30) == 0


async def test_the_banner_names_missing_secrets_of_sources(printed: Any, tmp_path: Path) -> None:
    """Before the first call fails."""
    (tmp_path / "toold.toml").write_text(
        'sources.crm = { type = "openapi", spec = "a.json", auth = { type = "bearer", env = "NO_SUCH_TOKEN" } }'
    )
    assert "  PROBLEM    source crm: the variable NO_SUCH_TOKEN is not set" in await printed()
