"""``toold serve``: the daemon, in the foreground."""

import sys

import click

from ..daemon import run
from .command_settings import settings_with


@click.command(short_help="Start the daemon in the foreground.")
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="PORT", help="The WebSocket port; 0 takes a free one.  [default: 8079]")
@click.option("--http-port", type=int, metavar="PORT", help="The port of /healthz and /metrics.  [default: 8080]")
@click.option(
    "--simulate/--no-simulate",
    default=None,
    help="Answer from the simulator, or never do.  [default: where no API key is set]",
)
@click.option("--no-auth", is_flag=True, help="Ask clients for no token; on loopback only.")
@click.option(
    "--log-format",
    type=click.Choice(["auto", "console", "json"]),
    help="How to log; auto is console on a terminal, else json.",
)
@click.option("--config", metavar="PATH", help="The settings file.  [default: toold.toml, where it is there]")
@click.option("--state-dir", metavar="PATH", help="Where token and database are.  [default: the platform's directory]")
def command(no_auth: bool, **flags: object) -> None:
    """Start the daemon in the foreground; Ctrl-C or SIGTERM ends it in good order.

    Flags come before the environment (TOOLD_…), and that before toold.toml; docs/configuration.md lists all settings.
    """
    if no_auth:
        flags["auth"] = False
    sys.exit(run(settings_with(flags)))
