"""``toold install``: adds toold to an editor's MCP configuration, or removes it."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ..daemon import variables_in
from ..protocol.daemon_address import is_loopback
from .command_settings import required_environment, toold_program, warn_unknown_toolsets
from .daemon_connection import CommandFailedError
from .editors import EDITORS, Editor, EditorFile, RefusedFileError, ServerEntry, locate, parse_toml
from .file_changes import content, difference, write
from .settings_file import SettingsFile, find_settings_file
from .terminal_output import say

_KEYS = {"kimi_api_key": "KIMI_API_KEY", "glm_api_key": "GLM_API_KEY"}


@click.command(
    epilog=f"EDITOR is one of {', '.join(editor.name for editor in EDITORS)}.",
)
@click.argument("editor", metavar="EDITOR", type=click.Choice([editor.name for editor in EDITORS]))
@click.option("--toolset", metavar="NAME", help="The toolset for the editor.  [default: the daemon's]")
@click.option(
    "--workspace",
    "workspaces",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory in which tools may read files; may be repeated.  [default: the folder that the editor has open]",
)
@click.option("--remove", is_flag=True, help="Remove the entry.")
@click.option("--print", "only_print", is_flag=True, help="Print the changes without writing them.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def command(
    editor: str, toolset: str | None, workspaces: tuple[Path, ...], remove: bool, only_print: bool, yes: bool
) -> None:
    """Register `toold mcp` as an MCP server in EDITOR's configuration file, with the state directory and toold.toml of
    the running daemon, or, if none runs, those in effect here. Also set client_workspaces or workspace in that
    toold.toml, so that tools can read the editor's files.

    Shows the changes, asks for confirmation, and backs up each file that it changes. The rest of these files stays
    as it is.
    """
    chosen = next(one for one in EDITORS if one.name == editor)
    if remove:
        _remove(chosen, only_print=only_print, yes=yes)
        return
    settings_file = find_settings_file()
    after = _allow_files(settings_file, workspaces)
    if after is not None:
        settings_file.check(after)
    entry = _entry(toolset, settings_file, written=after is not None)
    editor_change = _EditorChange(chosen, entry.as_value(chosen.shape))
    editor_change.show()
    if after is not None:
        _show_settings(settings_file, after)
    elif not editor_change.needed:
        say(f"{editor_change.file}: the entry is up to date; nothing to do.")
    if not only_print and (editor_change.needed or after is not None):
        if not yes:
            click.confirm(f"Apply this to {chosen.title} and toold?", abort=True)
        if after is not None:  # first: an editor may start the daemon at once
            settings_file.write(after)
        editor_change.write()
    named = f", which {chosen.title}'s entry names (TOOLD_CONFIG)" if "TOOLD_CONFIG" in entry.environment else ""
    say(f"Settings: {settings_file.path}{named}.")
    for line in _advice(settings_file, after):
        say(line)
    if not only_print:
        say(f"Done. {chosen.then}" if editor_change.needed else "Done.")


def _remove(editor: Editor, *, only_print: bool, yes: bool) -> None:
    change = _EditorChange(editor, None)
    if not change.needed:
        say(f"{change.file}: it has no entry for toold; nothing to do.")
        return
    change.show()
    if only_print:
        return
    if not yes:
        click.confirm(f"Apply this change to {editor.title}'s file?", abort=True)
    change.write()
    say("Done.")


class _EditorChange:
    """The change to an editor's file: toold's entry gets this value, or is removed if the value is None."""

    def __init__(self, editor: Editor, value: Mapping[str, Any] | None) -> None:
        located: EditorFile = locate(editor, platform=sys.platform, home=Path.home(), env=os.environ)
        self.file = located.path.resolve()  # a symbolic link stays; its target is changed
        self._editor = editor
        self._before = content(self.file)
        self._removes = value is None
        try:
            self._after = editor.change(self._before or "", located.keys, value)
        except RefusedFileError as refused:
            raise CommandFailedError(f"{self.file} is unchanged: {refused}") from None

    @property
    def needed(self) -> bool:
        return self._after != (self._before or "")

    def show(self) -> None:
        say(difference(self.file, self._before or "", self._after), nl=False)

    def write(self) -> None:
        if not self.needed:
            return
        if self._removes and self._is_own():
            try:
                self.file.unlink()
            except OSError as error:
                raise CommandFailedError(f"cannot remove {self.file} ({error.strerror})") from None
            say(f"Removed {self.file}, which has no other entries.")
        else:
            write(self.file, self._before, self._after)

    def _is_own(self) -> bool:
        """Whether ``toold install`` created the file: without its entry it is empty, and no backup was ever made."""
        return (
            not self._editor.holds_anything(self._after) and not self.file.with_name(f"{self.file.name}.bak1").exists()
        )


def _entry(toolset: str | None, file: SettingsFile, *, written: bool) -> ServerEntry:
    """The editor's entry: daemons that the editor starts read this settings file."""
    program, *rest = toold_program()
    options = () if toolset is None else ("--toolset", toolset)
    if toolset is not None:
        warn_unknown_toolsets([toolset], file.toolsets())
    config = file.path if written or file.before is not None else None
    return ServerEntry(program, (*rest, "mcp", *options), required_environment(file.state_dir(), config))


# --- files and keys --------------------------------------------------------------------------------------------------


def _allow_files(file: SettingsFile, workspaces: tuple[Path, ...]) -> str | None:
    """The new text of the settings file, which lets the daemon read files; None if nothing has to change."""
    values = file.values()
    if workspaces:
        present = values.get("workspace", _start_directory(file.report))
        listed = present.split(os.pathsep) if isinstance(present, str) else list(present)
        added = [str(path.resolve()) for path in workspaces]
        missing = [path for path in added if path not in listed]
        return file.with_key("workspace", listed + missing) if missing else None
    if {"workspace", "client_workspaces"} & values.keys() or _runs_with_workspace(file.report):
        return None
    return file.with_key("client_workspaces", True) if _may_allow_clients(file) else None


def _start_directory(report: Mapping[str, Any] | None) -> list[str]:
    """The default workspace of the running daemon, which a setting would replace."""
    if report is None or report["directory"] == report["settings"]["state_dir"]["value"]:
        return []
    return [report["directory"]]


def _runs_with_workspace(report: Mapping[str, Any] | None) -> bool:
    """Whether a flag or a variable already sets the workspace of the running daemon."""
    if report is None:
        return False
    settings = report["settings"]
    chosen = settings["workspace"]["origin"] in {"--workspace", "TOOLD_WORKSPACE"}
    return chosen or settings["client_workspaces"]["value"] == "true"


def _may_allow_clients(file: SettingsFile) -> bool:
    """Whether ``client_workspaces`` is permitted: ``auth`` is on and ``host`` is loopback."""
    try:
        file.check(file.with_key("client_workspaces", True))
    except CommandFailedError:
        return False
    if file.report is None:
        return True
    settings = file.report["settings"]  # flags and variables count, too
    return settings["auth"]["value"] == "true" and is_loopback(settings["host"]["value"])


def _show_settings(file: SettingsFile, after: str) -> None:
    if file.before is not None:
        say(difference(file.path, file.before, after), nl=False)
        return
    keys = [line for line in after.splitlines() if line and not line.startswith("#")]
    say(f"{file.path} (new, with every other setting commented out):")
    for line in keys:
        say(f"+{line}")


def _advice(file: SettingsFile, after: str | None) -> Iterator[str]:
    """Lines about the files that the daemon may read, its keys, and where to change them."""
    readable = _readable(file, after)
    yield f"Files: {' and '.join(readable) or 'none may be read'}. `--workspace DIR` adds a directory."
    keys = _set_keys(file)
    if keys:
        yield f"Keys: {', '.join(keys)}."
        return
    here = [name for name in variables_in(os.environ) if name in _KEYS.values()]
    shell = f" An editor that the desktop starts does not get {' and '.join(here)} of this shell." if here else ""
    yield (
        f"Keys: none is set, so a local simulator answers in place of the vendors.{shell} Put kimi_api_key, "
        f"glm_api_key or a table [providers.NAME] into {file.path} (mode 600), and restart the daemon if one runs."
    )


def _readable(file: SettingsFile, after: str | None) -> list[str]:
    """The directories that tools may read if the settings file has the text ``after`` (None: its current text)."""
    running = {} if file.report is None else file.report["settings"]
    settings = file.check(file.text if after is None else after)
    names = parse_toml(file.text if after is None else after)
    by_start = running.get("workspace", {}).get("value")  # a flag, a variable, or where it was started
    directories = [str(path) for path in settings.workspace] if "workspace" in names else [by_start] if by_start else []
    directories = [
        path for path in directories if path != str(file.state_dir())
    ]  # tools never read the state directory
    opened = settings.client_workspaces or running.get("client_workspaces", {}).get("value") == "true"
    return [*directories, *(["the folder that the editor has open"] if opened else [])]


def _set_keys(file: SettingsFile) -> list[str]:
    """The vendors' keys that the daemon has, and the providers that its file configures, with their origin."""
    if file.report is not None:
        settings = file.report["settings"]
        keys = [f"{name} ({settings[name]['origin']})" for name in _KEYS if settings[name]["value"] == "set"]
        configured = settings.get("providers", {"value": "none"})  # an older daemon does not report them
        return keys if configured["value"] == "none" else [*keys, f"providers {configured['value']}"]
    values = file.values()
    keys = [f"{name} ({file.path})" for name in _KEYS if values.get(name)]
    return [*keys, f"providers {', '.join(values['providers'])}"] if values.get("providers") else keys
