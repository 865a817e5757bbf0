"""``toold token``: the token that clients need, or where it is."""

import os

import click

from ..client import local_token, read_announcement
from ..protocol.rendezvous import TOKEN_FILE, default_state_dir
from .connecting import CommandFailedError


@click.command(short_help="Print the token, or where it is.")
@click.option("--path", "as_path", is_flag=True, help="Print the path of the token's file instead.")
def command(as_path: bool) -> None:
    """Print the token that clients send: TOOLD_TOKEN where it is set, else the one in the state folder."""
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
