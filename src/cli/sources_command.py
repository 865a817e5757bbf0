"""``toold sources``: lists, checks, approves, adds and removes tool sources."""

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click
import msgspec

from ..protocol.name_suggestions import close_names, did_you_mean
from .command_settings import settings_with
from .console_tables import Row, print_table
from .file_changes import difference
from .operator_client import operator_request
from .settings_file import SettingsFile, find_settings_file
from .shared_store import pins_for_check
from .shell_completions import complete_source
from .source_add_command import add, refused_server
from .source_search_command import search
from .sources_login_command import login, logout
from .status_command import cell
from .terminal_output import say, say_json

if TYPE_CHECKING:
    from ..sources import PinStorage

_VERSION_CHARS: Final = 12
"""The characters of a version's hash that are shown."""
HEADERS: Final[Row] = ("SOURCE", "TYPE", "STATE", "TOOLS", "REPAIRED", "OMITTED", "QUARANTINED", "PROBLEM")


@click.group()
def command() -> None:
    """List, check, approve, add and remove tool sources: REST APIs, MCP servers and remote agents.

    Each source is a table [sources.NAME] in toold.toml.
    """


@command.command("list", short_help="List the running daemon's sources.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(as_json: bool) -> None:
    """List the running daemon's sources with the number of their tools.

    \b
    loading   its tools are not known yet
    ready     its tools can be called
    failing   it has a problem; tools loaded earlier stay available
    """
    sources = operator_request("GET", "/sources")["sources"]
    if as_json:
        say_json(msgspec.json.encode(sources))
    elif not sources:
        say("No sources are configured; `toold sources add` adds one (docs/sources.md).")
    else:
        print_table(HEADERS, source_rows(sources), shrink="PROBLEM")


def source_rows(sources: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The table's rows, in the order of the configuration."""
    keys = ("name", "type", "state", "tools", "repaired", "omitted", "quarantined", "problem")
    return [tuple(cell(source.get(key)) for key in keys) for source in sources]


@command.command(short_help="Load the sources and report problems.")
@click.argument("name", required=False, shell_complete=complete_source)
@click.option("--config", metavar="PATH", help="The settings file.  [default: the running daemon's]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the tools and notes of each source.")
def check(name: str | None, config: str | None, as_json: bool) -> None:
    """Load all sources of the settings file, or NAME, and report what was repaired, omitted or quarantined, and why.

    Needs no running daemon. For a REST API, only its OpenAPI document is fetched; an MCP server is
    started or contacted once; for an agent, only its card is read. Exits with 1 if a source cannot be used.
    """
    file = find_settings_file(config)
    in_use = config or file.before is not None  # a named file that does not exist is an error
    settings = settings_with({"config": str(file.path) if in_use else None})
    configured = settings.sources
    if name is not None and name not in configured:
        raise _unknown_source(name, configured, file)
    chosen = configured if name is None else {name: configured[name]}
    checked = asyncio.run(_check(chosen, pins_for_check(settings, file.state_dir())))
    if as_json:
        say_json(msgspec.json.encode(checked))
    else:
        for source, report in checked.items():
            _print(source, report)
        if checked:
            say(f"Checked {file.path}.")
        else:
            say(f"{file.path} has no sources; `toold sources add` adds one (docs/sources.md).")
    sys.exit(any(report["problem"] is not None for report in checked.values()))


@command.command(short_help="Show the changes in quarantined tools.")
@click.argument("name", shell_complete=complete_source)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def review(name: str, as_json: bool) -> None:
    """Show the quarantined tools and prompts of the source NAME in the running daemon: the changes, and the command
    that approves each of them.
    """
    quarantined = operator_request("GET", f"/sources/{quote(name, safe='')}/quarantined")["quarantined"]
    if as_json:
        say_json(msgspec.json.encode(quarantined))
        return
    if not quarantined:
        say(f"{name}: nothing is quarantined")
    for each in quarantined:
        version = each["digest"][:_VERSION_CHARS]
        _print_quarantined(
            name, {"where": each["name"], "what": each["reason"], "version": version, "diff": each["diff"]}
        )
        say(f"  toold sources approve {name} {shlex.quote(each['name'])}={version}")


@command.command(short_help="Approve quarantined tools of a source.")
@click.argument("name", shell_complete=complete_source)
@click.argument("versions", nargs=-1, required=True, metavar="TOOL=VERSION...")
def approve(name: str, versions: Sequence[str]) -> None:
    """Approve quarantined tools or prompts of the MCP server or agent NAME, each with the version that you have seen.

    Tools are quarantined when they are new or have changed. `toold sources review NAME` shows the changes and the
    versions. If a tool has changed again since you saw it, it has another version, and the approval is refused.
    """
    for word in versions:
        tool, separator, version = word.rpartition("=")
        if not separator or not tool or not version:
            raise click.UsageError(
                f"{word!r} must be TOOL=VERSION; `toold sources review {name}` shows the changes and the versions"
            )
        answer = operator_request("POST", f"/sources/{quote(name, safe='')}/approve", tool=tool, version=version)
        for approved in answer["approved"]:
            say(f"{name}: approved {approved}")


command.add_command(add)
command.add_command(search)
command.add_command(login)
command.add_command(logout)


@command.command(short_help="Remove a source.")
@click.argument("name", shell_complete=complete_source)
@click.option("--config", metavar="PATH", help="The settings file to change.  [default: the running daemon's]")
def remove(name: str, config: str | None) -> None:
    """Remove the source NAME from toold.toml, after a backup.

    The files with its secrets and the record of its approved tools stay.
    """
    file = find_settings_file(config)
    configured = file.values().get("sources", {})
    if name not in configured:
        raise _unknown_source(name, configured, file)
    text = file.with_table(file.text, ("sources", name), None)
    file.check(text)
    say(difference(file.path, file.text, text), nl=False)
    file.write(text)
    say(f"Removed {name} from {file.path}. {file.reader}")


def _unknown_source(name: str, configured: Mapping[str, Any], file: SettingsFile) -> click.UsageError:
    hint = did_you_mean(close_names(name, configured, n=1)) or f"configured: {', '.join(configured) or 'none'}"
    return click.UsageError(f"there is no source {name!r} in {file.path}; {hint}")


async def _check(sources: Mapping[str, Any], pins: "PinStorage") -> dict[str, dict[str, Any]]:
    from ..sources import check_source

    checked = {name: await check_source(name, settings, pins=pins) for name, settings in sources.items()}
    return {name: msgspec.to_builtins(report) for name, report in checked.items()}


def _print_quarantined(source: str, note: Mapping[str, Any]) -> None:
    say(f"{source}: quarantined: {note['where']}: {note['what']} (version {note['version']})")
    for line in note["diff"].splitlines():
        say(f"  {line}")


def _print(source: str, report: Mapping[str, Any]) -> None:
    if report["problem"] is not None:
        say(f"{source}: {report['problem'].removeprefix(f'{source}: ')}")
        return
    for note in report["notes"]:
        if note["kind"] == "quarantined":
            _print_quarantined(source, note)
    for kind in ("omitted", "repaired"):
        for note in report["notes"]:
            if note["kind"] == kind:
                say(f"{source}: {kind}: {note['where']}: {note['what']}")
    for missing in report["missing_secrets"]:
        say(f"{source}: {missing}; calls that need it fail")
    for server in report["refused_servers"]:
        say(f"{source}: {refused_server(source, server)}")
    title = f" of {report['title']}" if report["title"] else ""
    excluded = f"; {report['excluded']} operations are not selected" if report["excluded"] else ""
    say(f"{source}: {len(report['tools'])} tools{title}{excluded}")
