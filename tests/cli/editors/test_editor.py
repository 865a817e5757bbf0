"""Where editors have their files."""

from pathlib import Path

import pytest
from toold.cli.editors import EDITORS, place_of
from toold.cli.editors.entry import Entry

HOME = Path("/home/me")


@pytest.mark.parametrize(
    ("name", "linux", "darwin"),
    [
        ("claude-code", ".claude.json", ".claude.json"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("vscode", ".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json", ".config/zed/settings.json"),
        ("gemini-cli", ".gemini/settings.json", ".gemini/settings.json"),
        ("codex", ".codex/config.toml", ".codex/config.toml"),
    ],
)
def test_its_file(name: str, linux: str, darwin: str) -> None:
    """By the editor's own documentation, on both platforms."""
    editor = next(editor for editor in EDITORS if editor.name == name)
    assert place_of(editor, platform="linux", home=HOME, env={}).file == HOME / linux
    assert place_of(editor, platform="darwin", home=HOME, env={}).file == HOME / darwin


def test_a_folder_that_was_moved() -> None:
    """Variables by which editors are told another folder count."""
    codex = next(editor for editor in EDITORS if editor.name == "codex")
    assert place_of(codex, platform="linux", home=HOME, env={"CODEX_HOME": "/c"}).file == Path("/c/config.toml")


def test_an_entry_in_each_shape() -> None:
    """Command and arguments; variables where there are any; and what else the editor asks for."""
    entry = Entry("/bin/toold", ("mcp",), {})
    assert entry.as_value("plain") == {"command": "/bin/toold", "args": ["mcp"]}
    assert entry.as_value("typed")["type"] == "stdio"
    assert Entry("t", (), {"A": "b"}).as_value("zed") == {
        "source": "custom",
        "command": "t",
        "args": [],
        "env": {"A": "b"},
    }
