"""``toold ui``: opens the dashboard in the browser, signed in."""

import webbrowser

import click

from .daemon_connection import NoConnectionError
from .operator_client import local_daemon, operator_request
from .terminal_output import say


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Print the link; open no browser.")
def command(only_print: bool) -> None:
    """Open the dashboard of this machine's daemon in a browser, signed in.

    The link works once, within a minute. A browser stays signed in for a week, or until you sign out.
    """
    address = local_daemon().address
    if address is None:
        raise NoConnectionError("the daemon is starting or stopping; try again")
    link = address.http_url + operator_request("POST", "/ui-link")["path"].removeprefix("/")
    if only_print or not webbrowser.open(link):
        say(link)
    else:
        say(f"The dashboard is open in your browser: {address.http_url}")
