"""The command line as processes against the real daemon: output and exit codes."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Toold = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def toold(command: Any, daemon: Any) -> Toold:
    """Runs a command that finds the shared daemon by its state directory."""

    def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = command(*arguments, state=daemon.state, **more)
        assert "Traceback" not in done.stderr
        return done

    return run


def test_call_prints_only_its_answer(toold: Toold) -> None:
    """Arguments follow the tool's schema, one comes from standard input, and the exit code is 0."""
    called = toold("call", "echo", "text=@-", "delay_ms=1", stdin="from a pipe")
    assert (called.returncode, called.stdout, called.stderr) == (0, "from a pipe\n", "")


def test_json_output_is_one_object(toold: Toold) -> None:
    """Results and errors have the same fields; an error has exit code 1."""
    called = toold("call", "echo", 'value:={"a": [1, null]}', "--json")
    answer = json.loads(called.stdout)
    assert called.returncode == 0
    assert (answer["structured"], answer["error"]) == ({"a": [1, None]}, None)
    assert answer["metadata"]["latency_ms"] > 0
    failed = toold("call", "bad_raises", "--json")
    error = json.loads(failed.stdout)
    assert failed.returncode == 1
    assert set(error) == set(answer)
    assert (error["outputs"], error["error"]["code"]) == ([], "TOOL_EXECUTION_ERROR")


def test_an_error_is_printed_to_stderr_with_advice(toold: Toold) -> None:
    """The error's code, message and advice, exit code 1, and nothing on stdout."""
    failed = toold("call", "echo", "text=x", "delay_ms=1000", "--timeout", "0.05")
    assert (failed.returncode, failed.stdout) == (1, "")
    first, advice = failed.stderr.splitlines()
    assert first.startswith("TIMEOUT: ")
    assert "--timeout" in advice


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["ehco", "text=x"], "did you mean 'echo'?"),
        (["echo", "text=x", "delay_ms=soon"], "delay_ms"),
    ],
)
def test_a_misspelt_call_is_not_sent(toold: Toold, words: list[str], suggestion: str) -> None:
    """The exit code is 2, and the error suggests the close name."""
    refused = toold("call", *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert suggestion in refused.stderr


def test_the_daemon_decides_about_names_of_arguments(toold: Toold) -> None:
    """It takes those of earlier servers, with a note and in prose, and suggests a listed name for others."""
    former = toold("call", "chat", "prompt=Hi", "model=glm-4.6", "use_websearch=false")
    assert former.returncode == 0
    assert former.stdout.startswith("Simulated answer from glm-4.6")
    assert "Note: use_websearch is now web_search." in former.stdout
    refused = toold("call", "echo", "txet=x")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "did you mean 'text'?" in refused.stderr


def test_stream_prints_a_completion_about_a_file(toold: Toold, daemon: Any, tmp_path: Path) -> None:
    """The text is printed once; a relative path is relative to the working directory and must be in the workspace."""
    (daemon.state.parent / "talk.md").write_text("# The file in question\n")
    words = ("prompt=What is it about?", f"files={daemon.state.parent / 'talk.md'}", "model=glm-4.6")
    called = toold("call", "chat", *words, "--stream")
    assert called.returncode == 0
    assert called.stdout.count("The file in question") == 1
    assert "asking glm-4.6" in called.stderr
    (tmp_path / "elsewhere.md").write_text("not to be read\n")
    refused = toold("call", "chat", "prompt=x", "files=elsewhere.md")
    assert refused.returncode == 1
    assert refused.stderr.startswith("PERMISSION_DENIED: ")
    assert "elsewhere.md" in refused.stderr


def test_tools_lists_all_or_shows_one(toold: Toold) -> None:
    """The command prints one line per tool; for one tool it prints arguments and an example; as JSON it prints the
    answer of ``list_tools``.
    """
    listed = toold("tools")
    assert listed.returncode == 0
    assert re.search(r"^chat +Ask a language model", listed.stdout, re.MULTILINE)
    assert re.search(r"^write_hangs +A write that hangs\.$", listed.stdout, re.MULTILINE)
    shown = toold("tools", "echo")
    assert "delay_ms" in shown.stdout
    assert "toold call echo" in shown.stdout
    (chat,) = [tool for tool in json.loads(toold("tools", "--json").stdout) if tool["name"] == "chat"]
    assert chat["inputSchema"]["required"] == ["prompt"]
    assert toold("tools", "ehco").returncode == 2


def test_status_shows_the_daemon_and_its_calls(toold: Toold, daemon: Any) -> None:
    """The command prints text, or the object of the ``status`` tool as JSON."""
    shown = toold("status")
    assert shown.returncode == 0
    assert f"ws://127.0.0.1:{daemon.port}/" in shown.stdout
    assert f"pid {daemon.process.pid}" in shown.stdout
    status = json.loads(toold("status", "--json", "--recent", "0").stdout)
    assert (status["status"], status["pid"], status["recent"]) == ("ready", daemon.process.pid, [])


def test_token_prints_the_token_or_its_path(toold: Toold, daemon: Any) -> None:
    """The command prints the token for other clients, or its path for scripts."""
    assert toold("token").stdout == daemon.token + "\n"
    assert toold("token", "--path").stdout == str(daemon.state / "token") + "\n"


def test_doctor_passes_with_the_running_daemon(toold: Toold, daemon: Any) -> None:
    """With the daemon's settings every check is ok, and no secret is printed."""
    looked = toold("doctor", "--json", TOOLD_PORT=str(daemon.port), TOOLD_HTTP_PORT=str(daemon.http_port))
    checks = {check["name"]: check for check in json.loads(looked.stdout)}
    assert looked.returncode == 0
    assert checks["daemon"]["status"] == checks["token"]["status"] == checks["port"]["status"] == "ok"
    assert str(daemon.process.pid) in checks["daemon"]["message"]
    assert daemon.token not in looked.stdout


@pytest.mark.parametrize("words", [("call", "echo", "text=x"), ("tools",), ("status", "--json")])
def test_without_a_daemon_the_exit_code_is_3(command: Any, words: tuple[str, ...]) -> None:
    """One line says where it looked and how to start a daemon."""
    failed = command(*words, TOOLD_PORT="1")
    assert (failed.returncode, failed.stdout) == (3, "")
    assert failed.stderr.count("\n") == 1
    assert "127.0.0.1:1" in failed.stderr
    assert "toold serve" in failed.stderr


def test_a_rejected_token_has_exit_code_3(toold: Toold) -> None:
    """The error names the token without its value."""
    refused = toold("call", "echo", "text=x", TOOLD_TOKEN="not-the-token-at-all")
    assert refused.returncode == 3
    assert "UNAUTHORIZED" in refused.stderr
    assert "not-the-token-at-all" not in refused.stderr


async def test_ctrl_c_cancels_the_call_on_the_daemon(daemon: Any, make_peer: Any) -> None:
    """The command exits with 130 and reports it; the daemon cancels the call."""
    arguments = [sys.executable, "-m", "toold", "call", "write_hangs", "seconds=300"]
    process = await asyncio.create_subprocess_exec(
        *arguments, env=daemon.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with make_peer() as watcher, asyncio.timeout(30):
            while not (await watcher.status())["limits"]["running"]["in_use"]:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            output, errors = await process.communicate()
            assert (process.returncode, output, errors.splitlines()[-1]) == (130, b"", b"cancelled")
            while (await watcher.status())["limits"]["running"]["in_use"]:
                await asyncio.sleep(0.01)
            outcomes: list[tuple[str, str]] = []
            while not outcomes:
                recent = (await watcher.status(recent=100))["recent"]
                outcomes = [(row["outcome"], row["message"]) for row in recent if row["tool"] == "write_hangs"]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert outcomes == [("CANCELLED", "The call was cancelled by its caller.")]
