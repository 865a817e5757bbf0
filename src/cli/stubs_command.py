"""``toold stubs``: the tools as typed Python functions, in files."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from .daemon_connection import ALL_TOOLS, CommandFailedError, toolset_option
from .operator_client import ask

_MARK: Final = '"""Tools as functions, '
"""How the modules begin that were written before."""


@click.command(short_help="Write the tools as typed Python functions.")
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory for them; made where it is not there.",
)
@toolset_option
def command(out: Path, toolset: str | None) -> None:
    """Write the functions by which a program of execute_code calls the tools: a module for each source, for people,
    editors and type checkers. They are those of all tools, unless --toolset or TOOLD_TOOLSET names fewer.

    Modules that were written before are written anew; of those that there are no more it is told. Where a file of the
    same name is something else, nothing is written at all.
    """
    modules: dict[str, str] = ask("GET", f"/stubs/{quote(toolset or ALL_TOOLS, safe='')}")["modules"]
    files = {out / f"{module}.py": source for module, source in modules.items()}
    try:
        for file in files:
            if file.exists() and not _is_ours(file):
                raise CommandFailedError(f"{file} is no module of stubs; name another directory, or move it away")
        out.mkdir(parents=True, exist_ok=True)
        for file, source in files.items():
            file.write_text(source, "utf-8")
        left = [file for file in sorted(out.glob("*.py")) if file not in files and _is_ours(file)]
    except OSError as error:
        raise CommandFailedError(f"{error.filename or out} cannot be written ({error.strerror})") from None
    for file, source in files.items():
        click.echo(f"{file}: {source.count('async def ')} functions")
    for file in left:
        click.echo(f"{file}: left from before; there is no such module now", err=True)


def _is_ours(file: Path) -> bool:
    """Whether it was written by this command."""
    return file.is_file() and file.read_bytes().startswith(_MARK.encode())
