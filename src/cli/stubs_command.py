"""``toold stubs``: writes the tools as typed Python functions."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from .daemon_connection import ALL_TOOLS, CommandFailedError, toolset_option
from .operator_client import operator_request
from .terminal_output import say

_MARK: Final = '"""Tools as functions, '
"""The first characters of every stub module."""


@click.command()
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The output directory; created if it does not exist.",
)
@toolset_option
def command(out: Path, toolset: str | None) -> None:
    """Write the tools as typed Python stubs, one module per source. The stubs tell people, editors and type checkers
    which functions a program of execute_code can call. --toolset or TOOLD_TOOLSET limits them to one toolset.

    Existing stub modules are overwritten. Those whose source no longer exists are listed, not deleted. If writing
    would overwrite a file that is not a stub module, nothing is written.
    """
    modules: dict[str, str] = operator_request("GET", f"/stubs/{quote(toolset or ALL_TOOLS, safe='')}")["modules"]
    files = {out / f"{module}.py": source for module, source in modules.items()}
    try:
        for file in files:
            if file.exists() and not _is_ours(file):
                raise CommandFailedError(f"{file} is not a stub module; choose another directory, or move the file")
        out.mkdir(parents=True, exist_ok=True)
        for file, source in files.items():
            file.write_text(source, "utf-8")
        outdated = [file for file in sorted(out.glob("*.py")) if file not in files and _is_ours(file)]
    except OSError as error:
        raise CommandFailedError(f"cannot write {error.filename or out} ({error.strerror})") from None
    for file, source in files.items():
        say(f"{file}: {source.count('async def ')} functions")
    for file in outdated:
        say(f"{file}: outdated; this module no longer exists", err=True)


def _is_ours(file: Path) -> bool:
    """Whether this command wrote the file."""
    return file.is_file() and file.read_bytes().startswith(_MARK.encode())
