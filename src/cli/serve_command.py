"""``toold serve``: runs the daemon in the foreground."""

import sys
from collections.abc import Iterator, Mapping

import click

from ..daemon import run, run_workers, slot_in
from .budget_question import ask_budget, needs_budget_question
from .command_settings import settings_with, toold_program


@click.command()
@click.option("--host", metavar="ADDRESS", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="PORT", help="The WebSocket port; 0 picks a free one.  [default: 8079]")
@click.option(
    "--http-port",
    type=int,
    metavar="PORT",
    help="The HTTP port for MCP, /healthz and /metrics; 0 picks a free one.  [default: 8080]",
)
@click.option(
    "--simulate/--no-simulate",
    default=None,
    help="Use the simulator instead of the vendors.  [default: only if no API key is set]",
)
@click.option("--no-auth", is_flag=True, help="Do not require a token; possible on loopback addresses only.")
@click.option(
    "--log-format",
    type=click.Choice(["auto", "console", "json"]),
    help="The log format; auto is console on a terminal, json elsewhere.",
)
@click.option(
    "--workers",
    type=int,
    metavar="N",
    help="The number of processes that share the ports; more than one requires PostgreSQL.  [default: 1]",
)
@click.option("--config", metavar="PATH", help="The settings file.  [default: ./toold.toml, or the state directory's]")
@click.option(
    "--state-dir",
    metavar="PATH",
    help="The directory for the token and the database.  [default: the platform's directory]",
)
def command(no_auth: bool, **flags: object) -> None:
    """Start the daemon in the foreground. Ctrl-C or SIGTERM stops it gracefully.

    Flags override environment variables (TOOLD_…), which override toold.toml. docs/configuration.md lists all settings.
    """
    if no_auth:
        flags["auth"] = False
    settings = settings_with(flags)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    place = settings.config_place
    if place is not None and needs_budget_question(settings, terminal=terminal) and ask_budget(place):
        settings = settings_with(flags)
    if settings.workers > 1 and slot_in() is None:
        sys.exit(run_workers(settings, [*toold_program(), "serve", *_given(flags)]))
    sys.exit(run(settings))


def _given(flags: Mapping[str, object]) -> Iterator[str]:
    """The flags with which this command was started."""
    for name, value in flags.items():
        option = "--" + name.replace("_", "-")
        match value:
            case None:
                pass
            case bool():
                yield option if value else f"--no-{name}"
            case _:
                yield from (option, str(value))
