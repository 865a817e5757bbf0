"""``toold sources search``: searches an MCP registry; and how ``add`` takes a server of one."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click
import msgspec

from ..protocol.terminal_text import one_line
from .console_tables import print_table
from .daemon_connection import CommandFailedError
from .terminal_output import say, say_json

if TYPE_CHECKING:
    from ..sources import RegisteredServer

PREFIX: Final = "registry:"
"""The beginning of a target of ``add`` that is a server of a registry."""
registry_option = click.option(
    "--registry", envvar="TOOLD_MCP_REGISTRY", metavar="URL", help="The base URL of an MCP registry."
)


@click.command(short_help="Search an MCP registry for servers.")
@click.argument("words")
@registry_option
@click.option("--allow-private", is_flag=True, help="The registry's address may be loopback or private.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def search(words: str, registry: str | None, allow_private: bool, as_json: bool) -> None:
    """Show the servers of an MCP registry whose name contains WORDS, and how each can be added.

    --registry or the variable TOOLD_MCP_REGISTRY names the registry. Anyone can publish servers there, so inspect a
    server before you add it.
    """
    found = asyncio.run(_search(words, registry, allow_private=allow_private))
    rows = [(server.name, server.version, ways(server), one_line(server.description, 200)) for server in found]
    if as_json:
        keys = ("name", "version", "ways", "description")
        say_json(msgspec.json.encode([dict(zip(keys, row, strict=True)) for row in rows]))
    elif not rows:
        say("No server was found.")
    else:
        print_table(("NAME", "VERSION", "WAYS", "DESCRIPTION"), rows, shrink="DESCRIPTION")


def ways(server: "RegisteredServer") -> str:
    """The ways in which a server can be added, in order."""
    from ..sources import tables_of

    return ", ".join(dict.fromkeys(way.way for way in tables_of(server) if way.table is not None)) or "-"


def registered_tables(
    target: str, registry: str | None, auth: Mapping[str, str], *, allow_private: bool
) -> list[dict[str, Any]]:
    """The tables of a server of a registry, to be tried in this order; addresses get the ``auth``.

    Raises:
        CommandFailedError: there is no such server, or it cannot be added.
    """
    from ..sources import tables_of

    name = target.removeprefix(PREFIX)
    server = asyncio.run(_find(name, registry, allow_private=allow_private))
    if server is None:
        raise CommandFailedError(f"the registry has no server {name!r}; `toold sources search` shows names")
    found = tables_of(server)
    tables = [
        _remote(way.table, auth, allow_private=allow_private) if "url" in way.table else dict(way.table)
        for way in found
        if way.table is not None
    ]
    if not tables:
        reasons = "; ".join(f"{way.way}: {way.problem}" for way in found) or "it has no package and no address"
        raise CommandFailedError(f"{name} cannot be added: {reasons}")
    return tables


def _remote(table: Mapping[str, Any], auth: Mapping[str, str], *, allow_private: bool) -> dict[str, Any]:
    more: dict[str, Any] = {"auth": dict(auth)} if auth else {}
    return {**table, **more} | ({"allow_private": [urlsplit(table["url"]).hostname]} if allow_private else {})


async def _search(words: str, registry: str | None, *, allow_private: bool) -> "list[RegisteredServer]":
    from ..sources import McpRegistry, UnusableAnswerError

    client = McpRegistry(_base(registry), allow_private=allow_private)
    try:
        return await client.search(words)
    except (UnusableAnswerError, LookupError) as error:
        raise CommandFailedError(f"the registry cannot be searched: {error}") from None
    finally:
        await client.close()


async def _find(name: str, registry: str | None, *, allow_private: bool) -> "RegisteredServer | None":
    from ..sources import McpRegistry, UnusableAnswerError

    client = McpRegistry(_base(registry), allow_private=allow_private)
    try:
        return await client.find(name)
    except UnusableAnswerError as error:
        raise CommandFailedError(f"the registry cannot be asked: {error}") from None
    finally:
        await client.close()


def _base(registry: str | None) -> str:
    if registry is None or not registry.startswith(("https://", "http://")):
        raise click.UsageError("give the base URL of an MCP registry: --registry URL, or TOOLD_MCP_REGISTRY")
    return registry
