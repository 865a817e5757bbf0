"""``toold token``: the daemon's own token, and named tokens for others: create, list, revoke."""

import os

import click

from ..client import local_token, read_announcement
from ..protocol.daemon_address import TOKEN_FILE, default_state_dir
from .daemon_connection import CommandFailedError
from .named_token_commands import create, list_, revoke


@click.group(
    short_help="Print the token; make, list and revoke named ones.",
    invoke_without_command=True,
    commands=[create, list_, revoke],
)
@click.option("--path", "as_path", is_flag=True, help="Print the path of the token's file instead.")
@click.pass_context
def command(ctx: click.Context, as_path: bool) -> None:
    """Print the token that clients send: TOOLD_TOKEN where it is set, else the one in the state directory.

    It may do everything. For others than yourself make tokens with names, each with what it may (docs/tokens.md).
    """
    if ctx.invoked_subcommand is not None:
        return
    path = default_state_dir(os.environ) / TOKEN_FILE
    if as_path:
        click.echo(path)
        return
    token = local_token(os.environ)
    address = read_announcement(path.parent).address
    if address is not None and not address.auth:
        click.echo(f"no token is needed: the daemon at {address.url} runs with auth off", err=True)
        if token is None:
            return
    if token is None:
        message = f"there is no token at {path}; the daemon's first start makes one: `make run` or `toold serve`"
        raise CommandFailedError(message)
    click.echo(token)
