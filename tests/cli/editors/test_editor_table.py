"""Where editors have their files."""

from pathlib import Path

import pytest
from toold.cli.editors import EDITORS, locate
from toold.cli.editors.server_entry import ServerEntry

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
    assert locate(editor, platform="linux", home=HOME, env={}).path == HOME / linux
    assert locate(editor, platform="darwin", home=HOME, env={}).path == HOME / darwin


def test_a_directory_named_by_a_variable() -> None:
    """Variables that name an editor's directory are respected."""
    codex = next(editor for editor in EDITORS if editor.name == "codex")
    assert locate(codex, platform="linux", home=HOME, env={"CODEX_HOME": "/c"}).path == Path("/c/config.toml")


def test_an_entry_in_each_shape() -> None:
    """Command and arguments; variables where there are any; and what else the editor asks for."""
    entry = ServerEntry("/bin/toold", ("mcp",), {})
    assert entry.as_value("plain") == {"command": "/bin/toold", "args": ["mcp"]}
    assert entry.as_value("typed")["type"] == "stdio"
    assert ServerEntry("t", (), {"A": "b"}).as_value("zed") == {
        "source": "custom",
        "command": "t",
        "args": [],
        "env": {"A": "b"},
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", '// mine\r\n{\r\n  "mcpServers": {\r\n    "other": {"command": "x"}\r\n  }\r\n}\r\n'),
        ("codex", 'model = \'x\'\r\nlong = """a\r\nb"""\r\n\r\n[mcp_servers.other]\r\ncommand = \'x\'\r\n'),
    ],
    ids=["json", "toml"],
)
def test_a_file_keeps_its_line_ends(name: str, text: str) -> None:
    """A file with CRLF keeps it; a second change has no effect, and the removal restores the file."""
    editor = next(editor for editor in EDITORS if editor.name == name)
    keys = (editor.servers, "toold")
    entry = ServerEntry("/bin/toold", ("mcp",), {"A": "b"}).as_value(editor.shape)
    after = editor.change(text, keys, entry)
    assert after.count("\n") == after.count("\r\n") > text.count("\n")
    assert editor.parse(after)[editor.servers]["toold"] == entry
    assert editor.change(after, keys, entry) == after
    assert editor.change(after, keys, None) == text
