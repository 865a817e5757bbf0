"""``toold reload``: the daemon reads its configuration again."""

import click

from .daemon_connection import CommandFailedError
from .operator_client import OperatorRefusedError, ask


class BadConfigurationError(CommandFailedError):
    """A setting of the configuration is wrong: exit code 2, as at the start."""

    exit_code = 2


@click.command(short_help="Have the daemon read its configuration again.")
def command() -> None:
    """Have the daemon read its toold.toml again, under the flags and the environment that it was started with.

    What can change at once does; what needs a restart is named, and stays as it was. Where a setting is wrong nothing
    changes at all, and the exit code is 2. SIGHUP does the same; the daemon's log then has the answer.
    """
    try:
        changes = ask("POST", "/reload")
    except OperatorRefusedError as error:
        message = f"toold: cannot reload: {error.message}; the old configuration stays"
        raise BadConfigurationError(message) from error
    for title, names in (("reloaded", changes["reloaded"]), ("needs a restart", changes["needs_restart"])):
        if names:
            click.echo(f"{title}: {', '.join(names)}")
    if not (changes["reloaded"] or changes["needs_restart"]):
        click.echo("unchanged")
