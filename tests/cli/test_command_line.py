"""The command's root: what it lists, and what it does not import."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from toold.cli.command_line import toold
from toold.version import __version__

if TYPE_CHECKING:
    from tests.cli.conftest import Run

HEAVY = (
    "asyncio",
    "httpx",
    "mcp",
    "msgspec",
    "openai",
    "pydantic",
    "rich",
    "structlog",
    "postgrest",
    "websockets",
    "zai",
    "zhipuai",
)
NAMES = [
    "serve",
    "init",
    "call",
    "tools",
    "status",
    "calls",
    "cancel",
    "sources",
    "hooks",
    "agents",
    "deploy",
    "undeploy",
    "jobs",
    "prompts",
    "providers",
    "ui",
    "stubs",
    "reload",
    "stop",
    "audit",
    "store",
    "doctor",
    "demo",
    "service",
    "install",
    "import",
    "mcp",
    "credentials",
    "token",
]


@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.process
def test_help_and_version_import_nothing_heavy(option: str) -> None:
    """``toold --help`` answers at once: no library behind the commands is loaded for it."""
    program = (
        "import sys\n"
        "from toold.cli import main\n"
        "try:\n"
        f"    main(['{option}'])\n"
        "finally:\n"
        f"    loaded = [name for name in {HEAVY} if name in sys.modules]\n"
        "    loaded += [name for name in sys.modules if name.startswith('toold.cli.')]\n"
        "    loaded = [name for name in loaded if name.split('.')[-1] not in {'command_line', 'terminal_output'}]\n"
        "    print(loaded, file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"
    assert ended.stdout


def test_help_lists_each_command_with_one_line(run: Run) -> None:
    """Every command is listed with a line of help, in the order in which a newcomer needs them."""
    result = run("--help")
    assert result.exit_code == 0
    context = click.Context(toold)
    assert toold.list_commands(context) == NAMES
    for name in NAMES:
        assert toold.get_command(context, name) is not None
        assert any(
            line.split()[:1] == [name] and line.endswith((".", "Hello'.")) for line in result.stdout.splitlines()
        )


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_help(run: Run, name: str) -> None:
    """``toold NAME --help`` works for every command."""
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_a_misspelt_command_gets_a_suggestion(run: Run) -> None:
    """A near miss is a usage error that names the command."""
    result = run("sttaus")
    assert result.exit_code == 2
    assert "status" in result.stderr


@pytest.mark.process
def test_python_m_toold_is_the_command() -> None:
    """``python -m toold`` is the same as ``toold``."""
    ended = subprocess.run([sys.executable, "-m", "toold", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == f"toold, version {__version__}"
