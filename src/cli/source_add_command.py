"""``toold sources add``: adds a REST API, an MCP server or a remote agent to ``toold.toml``."""

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import click
import msgspec

from ..audit import is_secret_name, redact_text
from .command_settings import settings_with
from .daemon_connection import CommandFailedError
from .editors import source_name
from .file_changes import difference
from .settings_file import SettingsFile, find_settings_file
from .shared_store import pins_for_check
from .source_search_command import PREFIX, registered_tables, registry_option
from .terminal_output import say

if TYPE_CHECKING:
    from ..sources import SourceCheck

Kind = Literal["openapi", "mcp", "a2a"]

_DOCUMENT: Final = re.compile(r"\.(json|ya?ml)$", re.IGNORECASE)
_CARDS: Final = ("/agent-card.json", "/agent.json")
_GENERIC: Final = frozenset({"npx", "uvx", "uv", "run", "python", "python3", "node", "docker", "bunx", "pipx", "deno"})
_GENERIC_LABELS: Final = frozenset({"api", "www", "mcp", "docs", "developer", "developers", "static", "raw"})


@click.command(
    short_help="Add a REST API, an MCP server or an agent.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("target", nargs=-1, required=True, metavar="URL|FILE|COMMAND...")
@click.option("--name", help="The source's name.  [default: from the target]")
@click.option(
    "--type", "kind", type=click.Choice(["openapi", "mcp", "a2a"]), help="The kind of the URL.  [default: try all]"
)
@click.option("--bearer-env", metavar="VARIABLE", help="The daemon's environment variable that holds the bearer token.")
@click.option(
    "--bearer-file", metavar="PATH", type=click.Path(exists=True, dir_okay=False), help="A file with the token."
)
@click.option(
    "--env",
    "variables",
    metavar="NAME[=TEXT]",
    multiple=True,
    help="Set a variable for COMMAND; without =TEXT, COMMAND gets the daemon's variable of this name.",
)
@click.option(
    "--allow-private",
    is_flag=True,
    help="Allow private addresses for the host of URL or of the registry, or for the servers in FILE.",
)
@registry_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation before adding a server from a registry.")
@click.option("--no-check", is_flag=True, help="Add the source without trying it.")
@click.option("--config", metavar="PATH", help="The settings file to change.  [default: the running daemon's]")
def add(
    target: tuple[str, ...],
    name: str | None,
    kind: Kind | None,
    bearer_env: str | None,
    bearer_file: str | None,
    variables: tuple[str, ...],
    allow_private: bool,
    registry: str | None,
    yes: bool,
    no_check: bool,
    config: str | None,
) -> None:
    """Add a source to toold.toml: an OpenAPI document (URL or FILE), the URL of an MCP server or of an agent that
    speaks A2A, or the COMMAND that starts an MCP server. Options precede the target.

    \b
      toold sources add https://api.example.com/openapi.json
      toold sources add --bearer-env TRACKER_TOKEN https://tracker.example/mcp
      toold sources add npx -y @modelcontextprotocol/server-filesystem /srv/shared
      toold sources add --registry URL registry:com.example/files

    The source is tried first, as `toold sources check` does; if it cannot be used, nothing is written. Secrets are
    never written to toold.toml: the options name the variable or the file that holds them.
    """
    file = find_settings_file(config)
    taken = set(file.values().get("sources", {}))
    if name is not None and name in taken:
        raise click.UsageError(f"a source named {name!r} already exists in {file.path}; choose another --name")
    auth = _auth(bearer_env, bearer_file)
    if target[0].startswith(PREFIX):
        if variables or kind or len(target) > 1:
            raise click.UsageError("a server from a registry takes no arguments, no --env and no --type")
        tables = registered_tables(target[0], registry, auth, allow_private=allow_private, yes=yes)
    else:
        tables = list(_tables(target, kind, auth, dict(map(_variable, variables)), allow_private=allow_private))
    chosen = name or source_name(_default_name(target), taken)
    addition = _Addition(file, chosen)
    if no_check:
        if allow_private and tables[0]["type"] == "openapi" and "allow_private" not in tables[0]:
            raise click.UsageError("--allow-private with a FILE requires the check, which finds the servers in FILE")
        addition.write(tables[0], "It was not tried.")
        return
    problems = []
    for table in tables:
        report = addition.check(table)
        if allow_private and table["type"] == "openapi" and "allow_private" not in table:
            table["allow_private"] = [server.host for server in report.refused_servers if server.may_be_allowed]
            report = addition.check(table)
        if report.problem is None:
            of = f" of {report.title}" if report.title else ""
            count = len(report.tools)
            addition.write(table, f"It has {count} tool{'' if count == 1 else 's'}{of}.")
            for server in report.refused_servers:
                say(f"warning: {refused_server(chosen, msgspec.to_builtins(server))}", err=True)
            return
        problems.append(f"as {table['type']}: {report.problem}")
    hint = _private_hint(target, problems)
    raise CommandFailedError(
        f"{chosen} cannot be used, so nothing was added; {'; '.join(problems)}. {hint}To add the source anyway, use "
        "--no-check"
    )


def _private_hint(target: Sequence[str], problems: Sequence[str]) -> str:
    """A hint about allowing private addresses, if the address is the problem."""
    if not any("allow_private" in problem for problem in problems):
        return ""
    how = " and give the server's URL instead of its name" if target[0].startswith(PREFIX) else ""
    return f"To allow this address, use --allow-private{how}. "


class _Addition:
    """A source that is to be added to a settings file."""

    def __init__(self, file: SettingsFile, name: str) -> None:
        self._file = file
        self._name = name

    def check(self, table: Mapping[str, Any]) -> "SourceCheck":
        """Try the source with this table."""
        from ..sources import check_source

        settings = self._file.check(self._text(table))
        # The daemon may have the setting ``store`` from a variable.
        daemon = settings_with({"config": None if self._file.before is None else str(self._file.path)})
        pins = pins_for_check(daemon, self._file.state_dir())
        self._file.make_directory()  # programs are started there
        return asyncio.run(check_source(self._name, settings.sources[self._name], pins=pins))

    def write(self, table: Mapping[str, Any], result: str) -> None:
        """Write the file, and print which variables the daemon needs."""
        text = self._text(table)
        settings = self._file.check(text).sources[self._name]
        say(difference(self._file.path, self._file.text, text), nl=False)
        self._file.write(text)
        say(f"Added {self._name} to {self._file.path}. {result} {self._file.reader}")
        variables = [secret.env for secret in settings.secrets if secret.env is not None]
        for line in _variable_notes(variables, os.environ, daemon_runs=self._file.report is not None):
            say(f"warning: {line}", err=True)

    def _text(self, table: Mapping[str, Any]) -> str:
        return self._file.with_table(self._file.text, ("sources", self._name), table)


def _variable_notes(variables: Sequence[str], env: Mapping[str, str], *, daemon_runs: bool) -> Iterator[str]:
    """A line for each variable that the daemon may lack, because its environment is that of its start."""
    for name in variables:
        remedy = "--bearer-file names a file instead, which every daemon can read"
        if not env.get(name):
            yield f"{name} is not set here; calls fail unless the daemon was started with it. {remedy}"
        elif daemon_runs:
            yield f"calls fail unless the daemon was started with {name}; check with `toold sources list`. {remedy}"


def refused_server(source: str, server: Mapping[str, str]) -> str:
    """The line about a server that a source may not reach."""
    return (
        f"calls to {server['host']} are refused, since it {server['reason']}; "
        f"allow_private of [sources.{source}] can allow it"
    )


def _auth(bearer_env: str | None, bearer_file: str | None) -> dict[str, str]:
    if bearer_env and bearer_file:
        raise click.UsageError("give either --bearer-env or --bearer-file")
    if bearer_env:
        return {"type": "bearer", "env": bearer_env}
    return {"type": "bearer", "file": str(Path(bearer_file).absolute())} if bearer_file else {}


def _variable(given: str) -> tuple[str, object]:
    """A program's variable: its text, or a reference to the daemon's variable of the same name."""
    name, has_text, text = given.partition("=")
    if not has_text:
        return name, {"env": name}
    if is_secret_name(name) or redact_text(text) != text:
        raise click.UsageError(
            f"the value of {name} looks like a secret, which does not belong in toold.toml; set {name} in the daemon's "
            f"environment, and use --env {name} without a value"
        )
    return name, text


def _tables(
    target: Sequence[str],
    kind: Kind | None,
    auth: Mapping[str, str],
    variables: Mapping[str, object],
    *,
    allow_private: bool,
) -> Iterator[dict[str, Any]]:
    """The tables to try, in this order, until one can be used."""
    (first, *rest) = _words(target) or target
    extra: dict[str, Any] = {"auth": dict(auth)} if auth else {}
    if re.match(r"https?://", first, re.IGNORECASE):
        if rest or variables:
            raise click.UsageError("a URL takes no arguments, and no --env")
        host = urlsplit(first).hostname
        extra |= {"allow_private": [host]} if allow_private else {}
        for one in (kind,) if kind else _kinds(first):
            yield {"type": one, "spec" if one == "openapi" else "url": first} | extra
            if one == "mcp" and urlsplit(first).path.rstrip("/").endswith("/sse"):
                yield {"type": one, "url": first, "transport": "sse"} | extra
    elif not rest and kind in {None, "openapi"} and Path(target[0]).is_file() and _DOCUMENT.search(target[0]):
        yield {"type": "openapi", "spec": str(Path(target[0]).absolute())} | extra
    elif shutil.which(first) is None:
        raise click.UsageError(f"{first!r} is neither a URL, nor a .json or .yaml file, nor a program on the PATH")
    elif auth or allow_private or kind in {"openapi", "a2a"}:
        raise click.UsageError("the options for URLs do not apply to a command; pass its secrets with --env")
    else:
        program = str(Path(first).absolute()) if os.sep in first else first
        yield {"type": "mcp", "command": [program, *map(_absolute_file, rest)]} | (
            {"env": dict(variables)} if variables else {}
        )


def _words(target: Sequence[str]) -> list[str]:
    """The words of a command, which may be given as a single string."""
    try:
        return list(target) if len(target) > 1 else shlex.split(target[0])
    except ValueError as error:
        raise click.UsageError(f"the command {target[0]!r} cannot be split into words: {error}") from None


def _absolute_file(word: str) -> str:
    """Returns the word; made absolute if it is a relative path of an existing file, as the program runs elsewhere."""
    path = Path(word)
    is_path = path.is_file() or (word.partition(os.sep)[0] in {".", ".."} and path.exists())
    return str(path.absolute()) if is_path else word


def _kinds(url: str) -> tuple[Kind, ...]:
    path = urlsplit(url).path
    if path.endswith(_CARDS):
        return ("a2a",)
    if _DOCUMENT.search(path):
        return ("openapi",)
    return ("mcp", "openapi", "a2a") if path.rstrip("/").endswith(("mcp", "/sse")) else ("openapi", "mcp", "a2a")


def _default_name(target: Sequence[str]) -> str:
    """A name from the host, the file, or the last word of the command that is neither an option nor a directory."""
    words = _words(target)
    if re.match(r"https?://", words[0], re.IGNORECASE):
        labels = [label for label in (urlsplit(words[0]).hostname or "").split(".") if label not in _GENERIC_LABELS]
        return labels[0] if labels and not labels[0].isdigit() else "local"
    named = [word for word in words if not word.startswith(("-", "/", "~")) and Path(word).name not in _GENERIC]
    word = Path(named[0] if named else words[0]).name.partition("@")[0]
    word = re.sub(r"\.(json|ya?ml|py|js)$", "", word)
    return re.sub(r"^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$", "", word) or word
