"""``toold cancel``: the end of a running call, whoever made it."""

from urllib.parse import quote

import click

from .operator_client import ask


@click.command(short_help="End a running call, whoever made it.")
@click.argument("call_id", metavar="ID")
def command(call_id: str) -> None:
    """End the running call ID, as `toold calls` shows it; what stands after the dash is enough.

    Its caller gets the error CANCELLED, which says that the operator did it. What the tool has done by then is done.
    """
    call = ask("POST", f"/calls/{quote(call_id, safe='')}/cancel")
    what = f"{call['id']} ({call['tool']} of session {call['session']})"
    if call["state"] == "ending":
        click.echo(f"The call {what} was ending already.")
    else:
        click.echo(
            f"Cancelled the call {what}, which was {call['state']}; its caller is told that the operator did it."
        )
