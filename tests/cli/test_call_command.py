"""``toold call``, against a daemon in a thread."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run, StubDaemon

REFUSED = {
    "code": "OVER_CAPACITY",
    "message": "too many calls",
    "executed": "no",
    "retryable": True,
    "retry_after_ms": 1500,
}
DENIED = {
    "ok": False,
    "error": {"code": "PERMISSION_DENIED", "message": "You may use lean.", "executed": "no", "retryable": False},
}


def test_the_text_of_the_answer_is_printed(run: Run, daemon: StubDaemon) -> None:
    """Text on stdout, nothing on stderr, exit code 0; the call carries the words as the schema reads them."""
    result = run("call", "echo", "text=7", "times=2", "files=a", "files=b")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "7\n", "")
    call = daemon.wait_for("call_tool")
    assert call["arguments"] == {"text": "7", "times": 2, "files": ["a", "b"]}
    assert "timeout_ms" not in call


def test_a_timeout_is_sent_in_milliseconds(run: Run, daemon: StubDaemon) -> None:
    """``--timeout`` is in seconds."""
    assert run("call", "echo", "text=a", "--timeout", "2.5").exit_code == 0
    assert daemon.wait_for("call_tool")["timeout_ms"] == 2500


def test_relative_paths_start_at_the_current_directory(
    run: Run, daemon: StubDaemon, monkeypatch: Any, tmp_path: Any
) -> None:
    """The hello has the command's working directory, and requests prose, and streaming only if
    text is printed as it arrives.
    """
    monkeypatch.chdir(tmp_path)
    run("call", "echo", "text=a")
    hello = daemon.wait_for("hello")
    assert hello["client"]["workspace"] == str(tmp_path)
    assert hello["features"] == ["ack", "prose_text"]


def test_every_tool_of_the_daemon_can_be_called(run: Run, daemon: StubDaemon, monkeypatch: Any) -> None:
    """A tool's name is looked up among all tools, unless a toolset is named."""
    run("call", "echo", "text=a")
    monkeypatch.setenv("TOOLD_TOOLSET", "lean")
    run("call", "echo", "text=a")
    run("call", "echo", "text=a", "--toolset", "mine")
    assert [frame["toolset"] for frame in daemon.frames if frame["op"] == "hello"] == ["full", "lean", "mine"]


def test_a_token_limited_to_toolsets_uses_its_default(run: Run, daemon: StubDaemon, monkeypatch: Any) -> None:
    """If the toolset of all tools is refused, the token's default is used; a named toolset is not replaced."""
    greet = daemon.greet
    monkeypatch.setattr(daemon, "greet", lambda hello: DENIED if "toolset" in hello else greet(hello))
    called = run("call", "echo", "text=a")
    assert (called.exit_code, called.stdout) == (0, "a\n")
    named = run("call", "echo", "text=a", "--toolset", "mine")
    assert named.exit_code == 3
    assert "You may use lean." in named.stderr
    toolsets = [frame.get("toolset") for frame in daemon.frames if frame["op"] == "hello"]
    assert toolsets == ["full", None, "mine"]


def test_json_prints_one_object_and_nothing_else(run: Run, daemon: StubDaemon) -> None:
    """A program reads the whole answer from stdout."""
    result = run("call", "echo", "text=hi", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert answer["request_id"] == daemon.wait_for("call_tool")["request_id"]
    assert answer["outputs"] == [{"type": "text", "text": "hi"}]
    assert (answer["structured"], answer["error"]) == ({"text": "hi"}, None)
    assert answer["metadata"]["latency_ms"] == 12


def refuse(call: dict[str, Any], send: Callable[..., None]) -> None:
    metadata = {"latency_ms": 1, "timings": {}}
    send("call_tool_res", request_id=call["request_id"], outputs=[], error=REFUSED, metadata=metadata)


def test_a_failed_call_prints_advice_and_exits_with_1(run: Run, daemon: StubDaemon) -> None:
    """Code, message, what to do and when to try again, on stderr."""
    daemon.on_call = refuse
    result = run("call", "echo", "text=hi")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("OVER_CAPACITY: too many calls\n")
    assert "Retry after 1.5 s." in result.stderr


def test_json_has_the_error_unchanged(run: Run, daemon: StubDaemon) -> None:
    """A program gets the error's record and the metadata on stdout, and exit code 1."""
    daemon.on_call = refuse
    result = run("call", "echo", "text=hi", "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    answer = json.loads(result.stdout)
    assert (answer["ok"], answer["error"]) == (False, REFUSED)
    assert answer["metadata"]["latency_ms"] == 1


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["ehco", "text=a"], "did you mean 'echo'?"),
        (["zzz"], "the tools are echo, status"),
        (["echo"], "needs text=…"),
        (["echo", "text=a", "times=x"], "'times' must be an integer"),
        (["echo", "text"], "write key=value"),
        (["echo", "text=a", "--json", "--stream"], "mutually exclusive"),
        (["echo", "text=a", "--timeout", "0"], "--timeout"),
    ],
)
def test_invalid_arguments_are_refused_before_sending(
    run: Run, daemon: StubDaemon, words: list[str], suggestion: str
) -> None:
    """Misspelt tools and arguments, missing and wrong ones: exit code 2, a suggestion, and no call."""
    result = run("call", *words)
    assert result.exit_code == 2
    assert suggestion in result.stderr
    assert not [frame for frame in daemon.frames if frame["op"] == "call_tool"]


def test_progress_goes_to_stderr(run: Run, daemon: StubDaemon) -> None:
    """Each progress report is a line on stderr, apart from the answer."""

    def slow(call: dict[str, Any], send: Callable[..., None]) -> None:
        send("progress", request_id=call["request_id"], seq=1, message="reading", done=1, total=3)
        send("progress", request_id=call["request_id"], seq=2, message="thinking")
        send("call_tool_res", request_id=call["request_id"], outputs=[{"type": "text", "text": "done"}], error=None)

    daemon.on_call = slow
    result = run("call", "echo", "text=hi")
    assert result.stdout == "done\n"
    assert result.stderr == "reading (1/3)\nthinking\n"


def stream(call: dict[str, Any], send: Callable[..., None]) -> None:
    for seq, text in enumerate(("one ", "two"), start=1):
        send("stream_chunk", request_id=call["request_id"], seq=seq, text=text)
    send("call_tool_res", request_id=call["request_id"], outputs=[{"type": "text", "text": "one two"}], error=None)


def test_streamed_text_is_printed_once(run: Run, daemon: StubDaemon) -> None:
    """Pieces are printed as they come and not again at the end."""
    daemon.on_call = stream
    assert run("call", "echo", "text=hi", "--stream").stdout == "one two\n"
    assert daemon.wait_for("hello")["features"] == ["ack", "prose_text", "stream"]


def test_an_answer_without_chunks_is_printed(run: Run, daemon: StubDaemon) -> None:
    """``--stream`` on a tool that streams nothing."""
    assert run("call", "echo", "text=hi", "--stream").stdout == "hi\n"


def test_standard_input_is_an_argument(run: Run, daemon: StubDaemon) -> None:
    """``text=@-`` pipes into a call."""
    assert run("call", "echo", "text=@-", stdin="from a pipe").stdout == "from a pipe\n"


def test_a_broken_connection_is_exit_code_3(run: Run, daemon: StubDaemon) -> None:
    """If the daemon disappears during a call, one line says that the call may have run."""

    def leave(call: dict[str, Any], send: Callable[..., None]) -> None:
        raise ConnectionAbortedError

    daemon.on_call = leave
    result = run("call", "echo", "text=hi")
    assert result.exit_code == 3
    assert "may have run" in result.stderr


@pytest.mark.process
def test_ctrl_c_cancels_the_call_on_the_daemon(daemon: StubDaemon) -> None:
    """SIGINT exits with 130 and a message on stderr, after the call was cancelled on the daemon."""

    def never(call: dict[str, Any], send: Callable[..., None]) -> None:
        """No answer comes."""

    daemon.on_call = never
    command = [sys.executable, "-m", "toold", "call", "echo", "text=hi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            call = daemon.wait_for("call_tool")
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (130, "", "cancelled\n")
    assert daemon.wait_for("cancel")["request_id"] == call["request_id"]
