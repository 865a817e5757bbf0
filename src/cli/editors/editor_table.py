"""The supported editors, the paths of their configuration files, and the functions that change them. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from . import jsonc_file, toml_file
from .server_entry import SERVER, Shape

Change = Callable[[str, tuple[str, ...], Mapping[str, Any] | None], str]
"""``(text, key path, value)``: returns the text with the value at the path, or without the entry if the value is None.
Raises ``RefusedFileError``."""
Parse = Callable[[str], Mapping[str, Any]]
"""Parses the file's text. Raises ``RefusedFileError``."""


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor; ``name`` is its name on the command line."""

    name: str
    title: str
    linux: str
    """The path of its file, which may begin with ``~`` or ``$VARIABLE``."""
    darwin: str
    servers: str
    """The key of the MCP servers in the file."""
    shape: Shape = "plain"
    toml: bool = False
    then: str = "Restart the editor to use toold's tools."

    @property
    def parse(self) -> Parse:
        return toml_file.parse if self.toml else jsonc_file.parse

    def holds_anything(self, text: str) -> bool:
        """Whether the file has entries or comments."""
        return bool(text.strip().strip("{} \t\r\n"))

    def change(self, text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
        """Like ``Change``; keeps CRLF if all lines of the file end with it."""
        change: Change = toml_file.change if self.toml else jsonc_file.change
        lines = text.count("\n")
        if not lines or text.count("\r\n") != lines:
            return change(text, keys, value)
        return change(text.replace("\r\n", "\n"), keys, value).replace("\n", "\r\n")


@dataclass(frozen=True, slots=True)
class EditorFile:
    """An editor's configuration file on this machine."""

    editor: Editor
    path: Path

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
        then="The next session has toold's tools; /mcp lists them.",
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
        then="The change takes effect at once.",
    ),
    Editor("gemini-cli", "Gemini CLI", "~/.gemini/settings.json", "~/.gemini/settings.json", "mcpServers"),
    Editor(
        "codex",
        "Codex",
        "$CODEX_HOME/config.toml",
        "$CODEX_HOME/config.toml",
        "mcp_servers",
        toml=True,
        then="The next session has toold's tools.",
    ),
)

_DIRECTORIES: Final[Mapping[str, str]] = {
    "CLAUDE_CONFIG_DIR": "",
    "XDG_CONFIG_HOME": ".config",
    "CODEX_HOME": ".codex",
}
"""The directories, relative to the home directory, if the variable is not set."""


def locate(editor: Editor, *, platform: str, home: Path, env: Mapping[str, str]) -> EditorFile:
    """The editor's file; platforms other than macOS use the Linux path."""
    first, _, rest = (editor.darwin if platform == "darwin" else editor.linux).partition("/")
    if first == "~":
        return EditorFile(editor, home / rest)
    name = first.removeprefix("$")
    value = env.get(name)
    return EditorFile(editor, (Path(value) if value else home / _DIRECTORIES[name]) / rest)
