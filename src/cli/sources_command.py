"""``toold sources``: what the running daemon's sources are like, what is wrong with them, and what is held back."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from ..protocol.name_suggestions import close_names, did_you_mean
from .command_settings import settings_with
from .console_tables import Row, print_table
from .operator_client import ask
from .status_command import cell

HEADERS: Final[Row] = ("SOURCE", "TYPE", "STATE", "TOOLS", "MENDED", "LEFT OUT", "QUARANTINED", "PROBLEM")


@click.group(short_help="Show, check and approve sources of tools: list, check, approve.")
def command() -> None:
    """Show what the sources of toold.toml, [sources.NAME], come to: others' tools that the daemon has as its own."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(as_json: bool) -> None:
    """Show the running daemon's sources, with how many tools each has.

    \b
    loading   its tools are not known yet
    ready     its tools can be called
    failing   something is wrong; the tools that it had stay
    """
    sources = ask("GET", "/sources")["sources"]
    if as_json:
        click.echo(msgspec.json.encode(sources))
    elif not sources:
        click.echo("No source is configured; docs/sources.md says how one is.")
    else:
        print_table(HEADERS, source_rows(sources), gives_way="PROBLEM")


def source_rows(sources: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The table's rows, in the configuration's order."""
    keys = ("name", "type", "state", "tools", "mended", "left_out", "quarantined", "problem")
    return [tuple(cell(source.get(key)) for key in keys) for source in sources]


@command.command()
@click.argument("name", required=False)
@click.option("--config", metavar="PATH", help="The settings file.  [default: toold.toml, where it is there]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: each source with its tools and notes.")
def check(name: str | None, config: str | None, as_json: bool) -> None:
    """Read the documents of all sources, or of NAME, and say what was mended in them, what was left out, and why.

    Needs no running daemon, and asks no API for anything but its document. Of MCP servers, it starts or asks each once,
    and says which of its tools are held back. Exits with 1 where a source cannot be used.
    """
    settings = settings_with({"config": config})
    configured = settings.sources
    if name is not None and name not in configured:
        hint = did_you_mean(close_names(name, configured, n=1)) or f"there are {', '.join(configured) or 'none'}"
        raise click.UsageError(f"there is no source {name!r}; {hint}")
    chosen = configured if name is None else {name: configured[name]}
    checked = asyncio.run(_check(chosen, settings.state_dir))
    if as_json:
        click.echo(msgspec.json.encode(checked))
    else:
        for source, found in checked.items():
            _print(source, found)
        if not checked:
            click.echo("No source is configured; docs/sources.md says how one is.")
    sys.exit(any(found["problem"] is not None for found in checked.values()))


@command.command()
@click.argument("name")
@click.argument("tool", required=False)
def approve(name: str, tool: str | None) -> None:
    """Accept a TOOL of the MCP server NAME that is held back, since it is new or has changed; or all of its tools.

    The running daemon accepts it as it is now: `toold sources check NAME` says what has changed.
    """
    query = {} if tool is None else {"tool": tool}
    for approved in ask("POST", f"/sources/{quote(name, safe='')}/approve", **query)["approved"]:
        click.echo(f"{name}: {approved} is approved")


async def _check(sources: Mapping[str, Any], state_dir: Path) -> dict[str, dict[str, Any]]:
    from ..sources import PINS_DIRECTORY, check_source

    pins = state_dir / PINS_DIRECTORY
    checked = {name: await check_source(name, settings, pins=pins) for name, settings in sources.items()}
    return {name: msgspec.to_builtins(found) for name, found in checked.items()}


def _print(source: str, found: Mapping[str, Any]) -> None:
    if found["problem"] is not None:
        click.echo(f"{source}: {found['problem']}")
        return
    for kind in ("quarantined", "left out", "mended"):
        for note in found["notes"]:
            if note["kind"] == kind:
                click.echo(f"{source}: {kind}: {note['where']}: {note['what']}")
    click.echo(f"{source}: {len(found['tools'])} tools" + (f" of {found['title']}" if found["title"] else ""))
