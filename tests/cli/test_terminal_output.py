"""Output on a terminal and elsewhere: text from tools, sources and the daemon cannot control a terminal."""

import ast
import json
import sys
from pathlib import Path

import click
import pytest
import toold.cli
from toold.cli.call_output import CallDisplay, print_result
from toold.cli.command_line import toold as command_line
from toold.cli.daemon_connection import CommandFailedError
from toold.cli.terminal_output import Styled, json_for_terminal, say, say_json
from toold.client import CallResult
from toold.protocol.tool_call import Metadata, Progress, Timings

HOSTILE = "\x1b]52;c;ZXZpbA==\x07 \x1b[2J\x9b31m \x7f\u202e👩\u200d💻 Zoë\tok\r\n"
CONTROLS = set("\x1b\x07\x9b\x7f\u202e\r")


def pretend_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both outputs say that they are a terminal."""
    monkeypatch.setenv("TERM", "xterm")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)


def result(text: str, structured: object = None) -> CallResult:
    return CallResult("id", [{"type": "text", "text": text}], structured, Metadata(1.0, Timings()))


def test_terminal_gets_no_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results, chunks, lines and styled parts reach a terminal without control characters; their text is unchanged."""
    pretend_terminal(monkeypatch)
    print_result(result(HOSTILE))
    with CallDisplay() as display:
        for char in HOSTILE:
            display.chunk(char)
    say(HOSTILE, Styled(HOSTILE))
    out = capsys.readouterr().out
    assert out.count("👩\u200d💻 Zoë\tok \n") == 4
    assert CONTROLS.isdisjoint(out.replace("\x1b[0m", ""))  # the end of our own style


def test_progress_on_a_terminal_has_no_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The progress line shows a tool's message without its escape sequences."""
    pretend_terminal(monkeypatch)
    with CallDisplay() as display:
        display.progress(Progress("\x1b]0;title\x07 \x9b5mhalf"))
        display.chunk("text")
    assert "\x1b]0" not in capsys.readouterr().err


def test_json_on_a_terminal_keeps_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Characters that are not printable are escaped, so that the JSON is valid and equal."""
    pretend_terminal(monkeypatch)
    value = {"text": HOSTILE, "tag": "\U000e0001"}
    say_json(json.dumps(value, ensure_ascii=False).encode())
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert out.rstrip("\n").isprintable()
    print_result(result(json.dumps(value), value))
    assert CONTROLS.isdisjoint(click.unstyle(capsys.readouterr().out))
    assert json_for_terminal('{\n "a": "ü"}') == '{\n "a": "ü"}'


def test_pipe_gets_everything_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, the bytes of a result are unchanged, and nothing is styled."""
    print_result(result(HOSTILE))
    say(Styled("BROKEN", "red"), f": {HOSTILE}", err=True)
    captured = capsys.readouterr()
    assert captured.out == HOSTILE + "\n"
    assert captured.err == f"BROKEN: {HOSTILE}\n"


def test_errors_on_a_terminal_have_no_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of every class that quote the daemon or a source are printed without control characters."""
    pretend_terminal(monkeypatch)
    for kind in (click.UsageError, CommandFailedError):

        def fails(_: click.Context, kind: type[click.ClickException] = kind) -> None:
            raise kind(HOSTILE)

        monkeypatch.setattr(click.Group, "invoke", lambda _, ctx, fails=fails: fails(ctx))
        with pytest.raises(click.ClickException) as caught:
            command_line.invoke(click.Context(command_line))
        caught.value.show()
        shown = capsys.readouterr().err
        assert "Zoë" in shown
        assert CONTROLS.isdisjoint(shown)


def test_every_command_prints_through_one_module() -> None:
    """Only ``terminal_output`` prints, so no command can omit the removal of control characters."""
    for path in Path(toold.cli.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(id="click"), attr="echo" | "secho" | "echo_via_pager"):
                    assert path.name == "terminal_output.py", f"{path}:{node.lineno}"
                case ast.Call(func=ast.Name(id="print")):
                    pytest.fail(f"{path}:{node.lineno} prints")
