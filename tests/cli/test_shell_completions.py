"""Shell completion of tools, arguments, sources and calls."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from toold.cli import shell_completions
from toold.cli.command_line import toold
from toold.cli.shell_completions import ToolBashComplete, joined_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Operated, StubDaemon

    Suggested = Callable[..., list[str]]


@pytest.fixture
def suggested(monkeypatch: pytest.MonkeyPatch) -> Suggested:
    """``suggested("call", "ec")``: what bash gets for the last of these words."""

    def suggested(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", "\n".join(["toold", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        text = ToolBashComplete(toold, {}, "toold", "_TOOLD_COMPLETE").complete()
        return [line.partition(",")[2] for line in text.splitlines()]

    return suggested


def test_commands_and_options_are_suggested(suggested: Suggested) -> None:
    """Without importing the commands."""
    assert suggested("so") == ["sources"]
    assert suggested("service", "") == ["install", "remove"]
    assert suggested("call", "--to") == ["--toolset"]


def test_tools_and_their_arguments_are_suggested(suggested: Suggested, daemon: StubDaemon) -> None:
    """By name; arguments that are already given are left out, unless they are arrays."""
    tool = daemon.tools[0]
    properties = {
        **tool["inputSchema"]["properties"],
        "mode": {"enum": ["fast", "slow"]},
        "options": {"type": "object"},
        "steps": {"type": "array", "items": {"type": "object"}},
        "loud": {"type": "boolean"},
    }
    daemon.tools[0] = tool | {"inputSchema": {"type": "object", "properties": properties}}
    assert suggested("call", "ec") == suggested("tools", "ec") == ["echo"]
    keys = ["text=", "value=", "times=", "files=", "mode=", "options:=", "steps:=", "loud="]
    assert suggested("call", "echo", "") == keys
    assert suggested("call", "echo", "files", "=", "a", "text", "=", "b", "") == [key for key in keys if key != "text="]
    assert suggested("call", "echo", "mode", "=") == ["fast", "slow"]
    assert suggested("call", "echo", "mode", "=", "s") == ["slow"]
    assert suggested("call", "echo", "loud", ":=", "t") == ["true"]
    assert suggested("call", "nothing", "t") == []


def test_sources_and_running_calls_are_suggested(suggested: Suggested, operated: Operated) -> None:
    """As the running daemon names them."""
    operated.answers["GET /operator/sources"] = (200, {"sources": [{"name": "crm"}, {"name": "shop"}]})
    operated.answers["GET /operator/calls"] = (200, {"running": [{"id": "ab-1"}], "recent": []})
    assert suggested("sources", "check", "c") == ["crm"]
    assert suggested("sources", "approve", "s") == ["shop"]
    assert suggested("cancel", "") == ["ab-1"]


def test_without_a_daemon_nothing_is_suggested(suggested: Suggested, capfd: pytest.CaptureFixture[str]) -> None:
    """And nothing is printed into the command line."""
    assert suggested("call", "e") == suggested("call", "echo", "t") == suggested("cancel", "") == []
    assert capfd.readouterr() == ("", "")


def test_a_silent_daemon_is_not_waited_for(
    suggested: Suggested, daemon: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ``PATIENCE_S`` without a list of tools, nothing is suggested."""
    monkeypatch.setattr(shell_completions, "PATIENCE_S", 0.2)
    monkeypatch.setattr(daemon, "_receive", lambda *_: None)
    assert suggested("call", "e") == []


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "=", "1", "b"], ["a=1", "b"]),
        (["a", ":=", "1", ""], ["a:=1", ""]),
        (["a", "="], ["a="]),
        (["a", "=", "http", ":", "//x", "b"], ["a=http://x", "b"]),
        ([""], [""]),
    ],
)
def test_the_pieces_of_bash_become_words(pieces: list[str], words: list[str]) -> None:
    """bash splits at = and :, and passes these signs as separate words."""
    assert joined_words(pieces) == words


@pytest.mark.process
def test_bash_completes_with_the_documented_line() -> None:
    """The script is valid, and suggests in a real bash; a single key is followed by no space."""
    script = """
eval "$(_TOOLD_COMPLETE=bash_source toold)"
compopt() { echo "compopt $*"; }
COMP_WORDS=(toold sourc); COMP_CWORD=1; _toold_completion toold; echo "${COMPREPLY[@]}"
complete -p toold
"""
    path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    ended = subprocess.run(["bash", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == ["sources", "complete -o nosort -F _toold_completion toold"]
