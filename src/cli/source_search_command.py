"""``toold sources search``: searches an MCP registry. Also converts a registry's description of a server into
the settings of a source, for ``toold sources add``.
"""

import asyncio
import shlex
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
"""The prefix of a target of ``add`` that names a server of a registry."""
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
    target: str, registry: str | None, auth: Mapping[str, str], *, allow_private: bool, yes: bool
) -> list[dict[str, Any]]:
    """The tables of settings to try, in this order, for a server from a registry. Tables with a URL get the ``auth``.
    Shows them and, without ``yes``, asks the operator to confirm.

    Raises:
        CommandFailedError: there is no such server, or it cannot be added.
    """
    from ..sources import tables_of

    name = target.removeprefix(PREFIX)
    server = asyncio.run(_find(name, registry, allow_private=allow_private))
    if server is None:
        raise CommandFailedError(f"the registry has no server {name!r}; `toold sources search` shows names")
    found = tables_of(server)
    private = urlsplit(_base(registry)).hostname if allow_private else None
    tables = [remote_table(way.table, auth, private) for way in found if way.table is not None]
    if not tables:
        reasons = "; ".join(f"{way.way}: {way.problem}" for way in found) or "it has no package and no address"
        raise CommandFailedError(f"{name} cannot be added: {reasons}")
    say(f"The registry describes {one_line(name, 200)} as follows:")
    for table in tables:
        say(f"  {_shown(table)}")
    if not yes:
        click.confirm("Anyone can publish to a registry. Try this server and add it?", abort=True)
    return tables


def _shown(table: Mapping[str, Any]) -> str:
    """A line with the address or command of this table's source, and its values."""
    words = [table["image"]] if "image" in table else []
    what = table["url"] if "url" in table else shlex.join([*words, *table.get("command", ())])
    auth, env = table.get("auth", {}), table.get("env", {})
    values = [f"the token in {auth.get('env') or auth.get('file')}"] if auth else []
    values += [f"your {name}" if isinstance(value, Mapping) else f"{name}={value}" for name, value in env.items()]
    kind = "address" if "url" in table else "image" if "image" in table else "command"
    text = f"{kind} {what}" + (f", with {', '.join(values)}" if values else "")
    return one_line(text, len(text) + 1)


def remote_table(table: Mapping[str, Any], auth: Mapping[str, str], private: str | None) -> dict[str, Any]:
    """The table, with the token if it has a URL. Private addresses are allowed only for the host ``private``, which the
    operator named: the publisher of the server chose any other host.
    """
    if "url" not in table:
        return dict(table)
    more: dict[str, Any] = {"auth": dict(auth)} if auth else {}
    return {**table, **more} | ({"allow_private": [private]} if urlsplit(table["url"]).hostname == private else {})


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
    try:
        valid = registry is not None and urlsplit(registry).scheme in {"https", "http"} and urlsplit(registry).hostname
    except ValueError:
        valid = False
    if registry is None or not valid:
        raise click.UsageError("give the base URL of an MCP registry: --registry URL, or TOOLD_MCP_REGISTRY")
    return registry
