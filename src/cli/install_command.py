"""``toold install``: adds toold to an editor's MCP configuration, or removes it."""

import difflib
import os
import shutil
import sys
from pathlib import Path

import click

from .command_settings import required_environment, settings_with, toold_program, warn_unknown_toolsets
from .daemon_connection import CommandFailedError
from .editors import EDITORS, Editor, EditorFile, RefusedFileError, ServerEntry, locate
from .terminal_output import say


@click.command(
    epilog=f"EDITOR is one of {', '.join(editor.name for editor in EDITORS)}.",
)
@click.argument("editor", metavar="EDITOR", type=click.Choice([editor.name for editor in EDITORS]))
@click.option("--toolset", metavar="NAME", help="The toolset for the editor.  [default: the daemon's]")
@click.option("--remove", is_flag=True, help="Remove the entry.")
@click.option("--print", "only_print", is_flag=True, help="Print the change without writing it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def command(editor: str, toolset: str | None, remove: bool, only_print: bool, yes: bool) -> None:
    """Register `toold mcp` as an MCP server in EDITOR's configuration file, with the state directory and toold.toml in
    effect here.

    Shows the change, asks for confirmation, and backs the file up. The rest of the file stays unchanged.
    """
    chosen = next(one for one in EDITORS if one.name == editor)
    editor_file = locate(chosen, platform=sys.platform, home=Path.home(), env=os.environ)
    file = editor_file.path.resolve()  # a symbolic link stays; its target is changed
    before = _content(file)
    value = None if remove else _entry(toolset).as_value(chosen.shape)
    try:
        after = chosen.change(before or "", editor_file.keys, value)
    except RefusedFileError as refused:
        raise CommandFailedError(f"{file} is unchanged: {refused}") from None
    if after == (before or ""):
        say(f"{file}: {'it has no entry for toold' if remove else 'the entry is up to date'}; nothing to do.")
        return
    say(_difference(file, before or "", after), nl=False)
    if only_print:
        return
    if not yes:
        click.confirm(f"Apply this change to {chosen.title}'s file?", abort=True)
    if remove and _is_own(file, after, chosen):
        _remove(file)
    else:
        _write(editor_file, file, before, after)
    say(f"Done. {'' if remove else chosen.then}".rstrip())


def _entry(toolset: str | None) -> ServerEntry:
    program, *rest = toold_program()
    settings = settings_with({})
    options = () if toolset is None else ("--toolset", toolset)
    warn_unknown_toolsets(options[1:], settings)
    return ServerEntry(program, (*rest, "mcp", *options), required_environment(settings))


def _difference(file: Path, before: str, after: str) -> str:
    """The changed lines, without context: the lines around them belong to other servers and may hold secrets."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), str(file), n=0
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _content(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CommandFailedError(f"{file} is unchanged: it is not UTF-8 text; fix it first") from None
    except OSError as error:
        raise CommandFailedError(f"cannot read {file} ({error.strerror})") from None


def _write(editor_file: EditorFile, file: Path, before: str | None, after: str) -> None:
    """Replace the file atomically, with the old file's permissions, after a backup."""
    unfinished = file.with_name(f"{file.name}.toold-new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            if _content(file) != before:
                raise CommandFailedError(f"{file} has changed in the meantime; run the command again")
            backup = _free_backup_name(file)
            shutil.copy2(file, backup)
            say(f"Backup: {backup}")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:  # noqa: PTH123 - opens a descriptor
            new.write(after.encode())
            new.flush()
            os.fsync(new.fileno())
        if before is not None:
            shutil.copymode(file, unfinished)
        unfinished.replace(file)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CommandFailedError(f"cannot write {editor_file.editor.title}'s {file} ({error.strerror})") from None


def _is_own(file: Path, after: str, editor: Editor) -> bool:
    """Whether ``toold install`` created the file: without its entry it is empty, and no backup of it was ever made."""
    return not editor.holds_anything(after) and not file.with_name(f"{file.name}.bak1").exists()


def _remove(file: Path) -> None:
    try:
        file.unlink()
    except OSError as error:
        raise CommandFailedError(f"cannot remove {file} ({error.strerror})") from None
    say(f"Removed {file}, which has no other entries.")


def _free_backup_name(file: Path) -> Path:
    number = 1
    while (backup := file.with_name(f"{file.name}.bak{number}")).exists():
        number += 1
    return backup
