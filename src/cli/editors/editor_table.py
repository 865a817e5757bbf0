"""Which editors there are, where their files are, and who changes these. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from . import jsonc_file, toml_file
from .server_entry import SERVER, Shape

Change = Callable[[str, tuple[str, ...], Mapping[str, Any] | None], str]
"""``(text, path of keys, value)``: the file's text with the value there, or with nothing there where it is None.
Raises ``RefusedFileError``."""
Read = Callable[[str], Mapping[str, Any]]
"""What the file's text says. Raises ``RefusedFileError``."""


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor by the name that the command line has for it."""

    name: str
    title: str
    linux: str
    """Its file, by a path that may begin with ``~`` or ``$VARIABLE``."""
    darwin: str
    servers: str
    """The key that the file has MCP servers under."""
    shape: Shape = "plain"
    toml: bool = False
    then: str = "Restart it to have toold's tools."

    @property
    def read(self) -> Read:
        return toml_file.read if self.toml else jsonc_file.read

    def change(self, text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
        """As ``Change``; what is written into a file whose lines all end in CRLF ends so too."""
        change: Change = toml_file.change if self.toml else jsonc_file.change
        lines = text.count("\n")
        if not lines or text.count("\r\n") != lines:
            return change(text, keys, value)
        return change(text.replace("\r\n", "\n"), keys, value).replace("\n", "\r\n")


@dataclass(frozen=True, slots=True)
class EditorFile:
    """Where an editor's entry stands on this machine."""

    editor: Editor
    file: Path

    @property
    def keys(self) -> tuple[str, str]:
        return (self.editor.servers, SERVER)


EDITORS: Final = (
    Editor(
        "claude-code",
        "Claude Code",
        "$CLAUDE_CONFIG_DIR/.claude.json",
        "$CLAUDE_CONFIG_DIR/.claude.json",
        "mcpServers",
        "typed",
        then="Its next session has toold's tools; /mcp shows them.",
    ),
    Editor(
        "claude-desktop",
        "Claude Desktop",
        "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
        "~/Library/Application Support/Claude/claude_desktop_config.json",
        "mcpServers",
    ),
    Editor("cursor", "Cursor", "~/.cursor/mcp.json", "~/.cursor/mcp.json", "mcpServers"),
    Editor(
        "vscode",
        "VS Code",
        "$XDG_CONFIG_HOME/Code/User/mcp.json",
        "~/Library/Application Support/Code/User/mcp.json",
        "servers",
        "typed",
        then="'MCP: List Servers' starts it.",
    ),
    Editor(
        "windsurf",
        "Windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        "~/.codeium/windsurf/mcp_config.json",
        "mcpServers",
    ),
    Editor(
        "zed",
        "Zed",
        "$XDG_CONFIG_HOME/zed/settings.json",
        "~/.config/zed/settings.json",
        "context_servers",
        "zed",
        then="It takes the change at once.",
    ),
    Editor("gemini-cli", "Gemini CLI", "~/.gemini/settings.json", "~/.gemini/settings.json", "mcpServers"),
    Editor(
        "codex",
        "Codex",
        "$CODEX_HOME/config.toml",
        "$CODEX_HOME/config.toml",
        "mcp_servers",
        toml=True,
        then="Its next session has toold's tools.",
    ),
)

_DIRECTORIES: Final[Mapping[str, str]] = {
    "CLAUDE_CONFIG_DIR": "",
    "XDG_CONFIG_HOME": ".config",
    "CODEX_HOME": ".codex",
}
"""Below the home directory, where the variable is not set."""


def place_of(editor: Editor, *, platform: str, home: Path, env: Mapping[str, str]) -> EditorFile:
    """The editor's file; other platforms than macOS have it where Linux has."""
    first, _, rest = (editor.darwin if platform == "darwin" else editor.linux).partition("/")
    if first == "~":
        return EditorFile(editor, home / rest)
    name = first.removeprefix("$")
    named = env.get(name)
    return EditorFile(editor, (Path(named) if named else home / _DIRECTORIES[name]) / rest)
