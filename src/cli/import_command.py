"""``toold import``: adds the MCP servers of an editor's configuration as sources."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from .daemon_connection import CommandFailedError
from .editors import (
    EDITORS,
    ImportedServer,
    RefusedFileError,
    SkippedServer,
    import_server,
    locate,
    parse_jsonc,
    parse_toml,
    servers_in,
    source_name,
)
from .file_changes import content, difference
from .settings_file import SettingsFile, find_settings_file
from .terminal_output import say

_SECRETS_DIRECTORY: Final = "secrets"
"""A directory in the state directory; tools cannot read it."""
_IMPORTED_ALREADY: Final = "it has been imported already"


@click.command()
@click.argument("file", metavar="FILE|EDITOR")
@click.option("--config", metavar="PATH", help="The settings file to change.  [default: the running daemon's]")
@click.option("--print", "only_print", is_flag=True, help="Print the change without writing it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def command(file: str, config: str | None, only_print: bool, yes: bool) -> None:
    """Add the MCP servers of an editor's configuration as sources in toold.toml. FILE is the configuration, such as
    mcp.json; EDITOR, such as cursor or claude-code, stands for that editor's own file.

    Shows the change and asks for confirmation. Secrets (values of variables and headers) are never shown; they are
    written to private files in the state directory, and toold.toml names these files. The editor's file stays
    unchanged.
    """
    path = _path(file)
    servers = servers_in(_parsed(path), str(Path.cwd()))
    if not servers:
        raise CommandFailedError(f"{path} has no MCP servers (mcpServers, servers, context_servers or mcp_servers)")
    settings_file = find_settings_file(config)
    secrets = settings_file.state_dir() / _SECRETS_DIRECTORY
    imported, skipped, text = _convert(servers, settings_file, secrets, path.parent)
    for left_out in skipped:
        say(f"skipped: {left_out.name}: {left_out.reason}")
    if not imported:
        say("Nothing to import.")
        sys.exit(all(left_out.reason != _IMPORTED_ALREADY for left_out in skipped))
    settings_file.check(text)
    say(difference(settings_file.path, settings_file.text, text), nl=False)
    for server in imported:
        for note in dict.fromkeys(server.notes):
            say(f"note: {server.name}: {note}")
    if only_print:
        return
    if not yes:
        click.confirm(f"Add {len(imported)} sources to {settings_file.path}?", abort=True)
    if str(secrets) in text:  # also for the files that the notes ask to write
        _make_private(secrets)
    for server in imported:
        _write_secrets(server)
    settings_file.write(text)
    names = ", ".join(server.name for server in imported)
    say(f"Imported {names} into {settings_file.path}. {settings_file.reader}")
    say(f"Try them: toold sources check --config {settings_file.path}. Then remove their entries from {path}.")


def _path(file: str) -> Path:
    editor = next((editor for editor in EDITORS if editor.name == file), None)
    if editor is None or Path(file).exists():
        return Path(file).absolute()
    return locate(editor, platform=sys.platform, home=Path.home(), env=os.environ).path


def _parsed(path: Path) -> Mapping[str, Any]:
    text = content(path)
    if text is None:
        raise CommandFailedError(
            f"{path} does not exist; name a file, or one of {', '.join(editor.name for editor in EDITORS)}"
        )
    try:
        return (parse_toml if path.suffix == ".toml" else parse_jsonc)(text)
    except RefusedFileError as refused:
        raise CommandFailedError(f"{path}: {refused}") from None


def _convert(
    servers: Mapping[str, Any], file: SettingsFile, secrets: Path, directory: Path
) -> tuple[list[ImportedServer], list[SkippedServer], str]:
    """The servers as sources, those that are skipped, and the text of the settings file with the sources."""
    text, configured = file.text, file.values().get("sources", {})
    taken: set[str] = set(configured)
    imported: list[ImportedServer] = []
    skipped: list[SkippedServer] = []
    for title, entry in servers.items():
        wanted = source_name(title, set())
        name = wanted if wanted in configured else source_name(title, taken)
        server = import_server(title, entry, name, secrets=secrets, directory=directory, home=Path.home())
        if isinstance(server, ImportedServer) and name in configured:
            same = configured[name] == server.table
            reason = _IMPORTED_ALREADY if same else "another source has this name; rename one of them"
            server = SkippedServer(title, reason)
        if isinstance(server, ImportedServer):
            candidate = file.with_table(text, ("sources", name), server.table)
            try:
                file.check(candidate)
            except CommandFailedError as error:
                server = SkippedServer(title, error.message.partition(" is unchanged: ")[2])
        if isinstance(server, SkippedServer):
            skipped.append(server)
        else:
            text = candidate
            taken.add(name)
            imported.append(server)
    return imported, skipped, text


def _make_private(directory: Path) -> None:
    """Create the directory of secrets, and the state directory if it does not exist, for this user only."""
    try:
        for path in (directory.parent, directory):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailedError(f"cannot create {directory} ({error.strerror})") from None


def _write_secrets(server: ImportedServer) -> None:
    for file, value in server.secrets.items():
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as written:  # noqa: PTH123 - opens a descriptor
                os.fchmod(descriptor, 0o600)
                written.write(f"{value}\n")
        except OSError as error:
            raise CommandFailedError(f"cannot write {file} ({error.strerror})") from None
