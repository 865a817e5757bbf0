"""``toold install``: tell an editor of the tools, in its own file; or take it back."""

import difflib
import os
import shutil
import sys
from pathlib import Path

import click

from .command_settings import note_missing, settings_with
from .daemon_connection import CommandFailedError
from .editors import EDITORS, EditorFile, RefusedFileError, ServerEntry, place_of
from .program_path import needed, toold


@click.command(
    short_help="Tell an editor of the tools: toold install cursor.",
    epilog=f"EDITOR is one of {', '.join(editor.name for editor in EDITORS)}.",
)
@click.argument("editor", metavar="EDITOR", type=click.Choice([editor.name for editor in EDITORS]))
@click.option("--toolset", metavar="NAME", help="Which tools it is to have.  [default: the daemon's]")
@click.option("--remove", is_flag=True, help="Take the entry out again.")
@click.option("--print", "only_print", is_flag=True, help="Print the change, and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
def command(editor: str, toolset: str | None, remove: bool, only_print: bool, yes: bool) -> None:
    """Write into EDITOR's file that `toold mcp` is an MCP server, for the state directory and toold.toml in effect
    here.

    Shows the change first, and keeps the file that was there beside it. All else in the file stays as it is; a file
    that cannot be read is not touched.
    """
    chosen = next(one for one in EDITORS if one.name == editor)
    place = place_of(chosen, platform=sys.platform, home=Path.home(), env=os.environ)
    file = place.file.resolve()  # a link stays one, and what it leads to is changed
    before = _content(file)
    value = None if remove else _entry(toolset).as_value(chosen.shape)
    try:
        after = chosen.change(before or "", place.keys, value)
    except RefusedFileError as refused:
        raise CommandFailedError(f"{file} stays as it is: {refused}") from None
    if after == (before or ""):
        click.echo(f"{file}: {'there is no entry of toold' if remove else 'all is as it should be'}; nothing to do.")
        return
    click.echo(_difference(file, before or "", after), nl=False)
    if only_print:
        return
    if not yes:
        click.confirm(f"Change {chosen.title}'s file so?", abort=True)
    _write(place, file, before, after)
    click.echo(f"Done. {'' if remove else chosen.then}".rstrip())


def _entry(toolset: str | None) -> ServerEntry:
    program, *rest = toold()
    settings = settings_with({})
    wish = () if toolset is None else ("--toolset", toolset)
    note_missing(wish[1:], settings)
    return ServerEntry(program, (*rest, "mcp", *wish), needed(settings))


def _difference(file: Path, before: str, after: str) -> str:
    """The change line by line. What stands around it is another server's, and may be secret."""
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
        raise CommandFailedError(f"{file} stays as it is: it is not UTF-8 text; mend it first") from None
    except OSError as error:
        raise CommandFailedError(f"{file} cannot be read ({error.strerror})") from None


def _write(place: EditorFile, file: Path, before: str | None, after: str) -> None:
    """Put the new text in place, whole or not at all, with the rights of the old one."""
    unfinished = file.with_name(f"{file.name}.toold-new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            if _content(file) != before:
                raise CommandFailedError(f"{file} was changed meanwhile; run this again")
            kept = _free_name(file)
            shutil.copy2(file, kept)
            click.echo(f"The file as it was is kept as {kept}.")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:  # noqa: PTH123 - of a descriptor
            new.write(after.encode())
            new.flush()
            os.fsync(new.fileno())
        if before is not None:
            shutil.copymode(file, unfinished)
        unfinished.replace(file)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CommandFailedError(f"{place.editor.title}'s {file} cannot be written ({error.strerror})") from None


def _free_name(file: Path) -> Path:
    number = 1
    while (kept := file.with_name(f"{file.name}.bak{number}")).exists():
        number += 1
    return kept
