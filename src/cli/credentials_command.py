"""``toold credentials``: sets, lists and removes the caller's credentials for services. Values are never arguments,
which other programs could see."""

import json
import sys
from typing import Any
from urllib.parse import quote

import click

from .console_tables import print_table
from .operator_client import daemon_request
from .terminal_output import say, say_json

_PATH = "/api/v1/user/credentials"
_MAX_INPUT_CHARS = 128 * 1024
"""Twice the bytes of the largest credential."""

_user = click.option(
    "--user", metavar="ID", help="The user for whom to act; TOOLD_TOKEN must be a token that acts for users."
)


@click.group()
def command() -> None:
    """Set, list and remove your own credentials for services, such as an API key for Jira.

    Sources with auth = {user = "jira", field = "api_key"} send them with your calls, and with no one else's
    (docs/credentials.md). The credentials belong to the principal of TOOLD_TOKEN. Needs a running daemon.
    """


@command.command("set", short_help="Store a credential, or replace it.")
@click.argument("service")
@click.argument("fields", nargs=-1)
@_user
def set_(service: str, fields: tuple[str, ...], user: str | None) -> None:
    """Store the credential for SERVICE, replacing any earlier one: toold credentials set jira api_key

    On a terminal, asks for the value of each field without showing it. Otherwise reads standard input: with FIELDS one
    line per field, without them a JSON object.
    """
    if not fields and sys.stdin.isatty():
        raise click.UsageError("name the fields, such as: toold credentials set jira api_key")
    stored = daemon_request(
        "POST", _PATH, body={"service_type": service, "credentials": _values(fields)}, headers=_headers(user)
    )
    say(f"stored: {stored['service_type']} ({', '.join(stored['fields'])})")


@command.command("list", short_help="List the services and fields, without values.")
@_user
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(user: str | None, as_json: bool) -> None:
    """List the services for which credentials are stored, and their fields. Values are never shown."""
    entries: list[dict[str, Any]] = daemon_request("GET", _PATH, headers=_headers(user))["credentials"]
    if as_json:
        say_json(json.dumps(entries).encode())
    elif not entries:
        say("There are no credentials; `toold credentials set SERVICE FIELD` stores one.")
    else:
        rows = [(entry["service_type"], ", ".join(entry["fields"]), entry["updated_at"] or "-") for entry in entries]
        print_table(("SERVICE", "FIELDS", "UPDATED"), rows, shrink="FIELDS")


@command.command(short_help="Remove a credential.")
@click.argument("service")
@_user
def remove(service: str, user: str | None) -> None:
    """Remove the credential for SERVICE. Calls that need it fail or pause from now on."""
    daemon_request("DELETE", f"{_PATH}/{quote(service, safe='')}", headers=_headers(user))
    say(f"removed: {service}")


def _headers(user: str | None) -> dict[str, str]:
    return {} if user is None else {"X-User-Id": user}


def _values(fields: tuple[str, ...]) -> dict[str, Any]:
    """The values by field, from the terminal or standard input."""
    if sys.stdin.isatty():
        return {name: click.prompt(name, hide_input=True, err=True) for name in fields}
    text = sys.stdin.read(_MAX_INPUT_CHARS + 1)
    if len(text) > _MAX_INPUT_CHARS:
        raise click.UsageError("standard input is longer than any credential")
    if fields:
        lines = text.splitlines()
        if len(lines) != len(fields):
            raise click.UsageError(f"standard input must have one line for each field: {', '.join(fields)}")
        return dict(zip(fields, lines, strict=True))
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise click.UsageError('standard input must be a JSON object, such as {"api_key": "…"}')
    return values
