"""``toold init``: writes a settings file in which every setting is commented out."""

from pathlib import Path

import click

from ..protocol.daemon_address import CONFIG_FILE
from .daemon_connection import CommandFailedError
from .file_changes import write
from .settings_file import template
from .terminal_output import say


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=CONFIG_FILE)
def command(path: Path) -> None:
    """Write a toold.toml with all settings, commented out, with their defaults. PATH is the directory to write to, or
    a file name to use instead of toold.toml. The default is ./toold.toml.

    A daemon uses the toold.toml in the directory where it is started, otherwise the one in the state directory. A
    daemon that an editor starts uses the latter. `toold doctor` names the file of a running daemon. Never overwrites a
    file.
    """
    file = path / CONFIG_FILE if path.is_dir() else path
    if file.exists():
        raise CommandFailedError(f"{file} exists and is unchanged; edit it, or name another file")
    write(file, None, template())
    say(f"Wrote {file}, with every setting commented out and mode 600, since it may hold keys.")
    if file.name == CONFIG_FILE:
        say(f"`toold serve` uses it when started in {file.resolve().parent}.")
    else:
        say(f"Start the daemon with it: toold serve --config {file}")
