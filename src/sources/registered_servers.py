"""Servers of an MCP registry: its API (version 0.1), and the table of a source for one of its servers.

Entries are untrusted, because anyone can publish a server. So names of packages are checked, values that only a person
can give are not guessed, and no program is run here.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from ..protocol.terminal_text import one_line
from .json_server import JsonServer, UnusableAnswerError
from .source_settings_reader import SourceSettingsError, read_sources

PAGE_SERVERS: Final = 30
"""The maximum number of servers that one search returns."""
TIMEOUT_S: Final = 20.0
_SERVERS: Final = "/v0.1/servers"
_NAMES: Final = {
    "npm": re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*"),
    "pypi": re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"),
    "oci": re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}"),
}
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,100}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://[^\s{}]+")
_PUBLIC: Final = {
    "npm": ("036b43b16792c643378e95923ed2f4cc78e800de141b764aeea70d47580396df",),
    "pypi": (
        "b4c93a4591f5e6ddfc66b8a35a37ab125d5d352002bffbc5e9293a87fe06a8ca",
        "5a06749b2297be54ac5699f6f2761716adc5001a2d5f8b915ab2172922dd5706",
    ),
    "oci": ("e0c00af966f2941f02b48106efb4ba98ee3fc792095455b4d16671b0d4844612",),
}
"""The package registries that ``npx``, ``uvx`` and docker use by default, as SHA-256 of their addresses: no file of the
project names them. Packages of other registries are refused, because here their names may belong to anyone.
"""
_CONFIRMING: Final = ("-y", "--yes")
"""The options that ``npx`` always gets."""
_OF_RUNNERS: Final = re.compile(
    r"(?:DYLD|LD|NPM_CONFIG|PIP|TOOLD|UV)_.*"
    r"|BASH_ENV|ENV|HOME|NODE_OPTIONS|NODE_PATH|PATH|PYTHON(?:EXECUTABLE|HOME|PATH|STARTUP|USERBASE)|SHELL",
    re.IGNORECASE,
)
"""Variables that decide which program runs, and variables of the daemon."""


class _Input(msgspec.Struct):
    name: str = ""
    value: str | None = None
    default: str | None = None
    type: str = ""
    is_required: bool = msgspec.field(name="isRequired", default=False)
    is_secret: bool = msgspec.field(name="isSecret", default=False)
    hint: str = msgspec.field(name="valueHint", default="")

    @property
    def fixed(self) -> str | None:
        """The value, unless a person has to choose it."""
        value = self.default if self.value is None else self.value
        return None if value is None or self.is_secret or "{" in value else value


class _Transport(msgspec.Struct):
    type: str = ""
    url: str = ""
    headers: list[_Input] = []


class _Package(msgspec.Struct):
    kind: str = msgspec.field(name="registryType", default="")
    identifier: str = ""
    base: str = msgspec.field(name="registryBaseUrl", default="")
    version: str = ""
    transport: _Transport = msgspec.field(default_factory=_Transport)
    runtime_arguments: list[_Input] = msgspec.field(name="runtimeArguments", default_factory=list)
    arguments: list[_Input] = msgspec.field(name="packageArguments", default_factory=list)
    variables: list[_Input] = msgspec.field(name="environmentVariables", default_factory=list)


class RegisteredServer(msgspec.Struct):
    """A registry's description of a server."""

    name: str
    description: str = ""
    version: str = ""
    packages: list[_Package] = []
    remotes: list[_Transport] = []


class _Entry(msgspec.Struct):
    server: RegisteredServer


class _Page(msgspec.Struct):
    servers: list[_Entry] = []


class ServerTable(NamedTuple):
    """One way to use a server: the table of a source, or the reason why this way is impossible."""

    way: str
    """``remote``, or the kind of the package: ``npm``, ``pypi``, ``oci``."""
    table: Mapping[str, Any] | None
    problem: str = ""


class McpRegistry:
    """A registry at a base URL."""

    def __init__(self, base: str, *, allow_private: bool = False) -> None:
        self._server = JsonServer(
            base.rstrip("/"),
            table="--registry",
            key=None,
            timeout_s=TIMEOUT_S,
            allow_private=allow_private,
            allowed_by="--allow-private",
        )

    async def search(self, words: str) -> list[RegisteredServer]:
        """The latest versions of servers whose name contains these words, at most ``PAGE_SERVERS``.

        Raises:
            UnusableAnswerError: the registry cannot be asked.
        """
        query = urlencode({"search": words, "version": "latest", "limit": PAGE_SERVERS})
        page: _Page = await self._ask(f"{_SERVERS}?{query}", _Page)
        return [entry.server for entry in page.servers[:PAGE_SERVERS]]

    async def find(self, name: str) -> RegisteredServer | None:
        """The latest version of the server of this name; None if there is none.

        Raises:
            UnusableAnswerError: the registry cannot be asked.
        """
        try:
            entry: _Entry = await self._ask(f"{_SERVERS}/{quote(name, safe='')}/versions/latest", _Entry)
        except LookupError:
            return None
        if entry.server.name != name:
            raise UnusableAnswerError(f"it answered with another server ({one_line(entry.server.name, 80)})")
        return entry.server

    async def close(self) -> None:
        """Closes the connections."""
        await self._server.close()

    async def _ask(self, path: str, kind: Any) -> Any:
        answer = await self._server.send("GET", path)
        if answer.status == 404:
            raise LookupError(path)
        if answer.status != 200:
            raise UnusableAnswerError(f"it answered with HTTP {answer.status}")
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.DecodeError, RecursionError):
            raise UnusableAnswerError(
                "its answer does not conform to the API of MCP registries (version 0.1)"
            ) from None


def tables_of(server: RegisteredServer) -> list[ServerTable]:
    """The ways to use a server, in its own order: remote addresses first, then packages."""
    return [*map(_checked, map(_remote, server.remotes)), *map(_checked, map(_packaged, server.packages))]


def _checked(way: ServerTable) -> ServerTable:
    """The same way to use the server, without its table if that is not a valid source."""
    try:
        read_sources({} if way.table is None else {"server": way.table})
    except SourceSettingsError as error:
        return ServerTable(way.way, None, one_line(str(error).removeprefix("[sources.server] "), 200))
    return way


def _remote(remote: _Transport) -> ServerTable:
    if remote.type not in {"streamable-http", "sse"} or _URL.fullmatch(remote.url) is None:
        return ServerTable("remote", None, "its address has variables, or another transport")
    table = {"type": "mcp", "url": remote.url} | ({"transport": "sse"} if remote.type == "sse" else {})
    wanted = [header.name for header in remote.headers if header.is_required or header.is_secret]
    if [name for name in wanted if name.lower() != "authorization"]:
        return ServerTable("remote", None, f"it needs the headers {one_line(', '.join(wanted), 200)}")
    return ServerTable("remote", table)


def _packaged(package: _Package) -> ServerTable:
    kind = package.kind
    try:
        command = list(_command(package))
        arguments = [*_values(package.arguments)]
        env = dict(_environment(package))
    except ValueError as error:
        return ServerTable(kind if kind in _NAMES else "package", None, str(error))
    table: dict[str, Any] = {"type": "mcp"}
    if kind == "oci":
        table["image"] = command[0]
        if arguments:
            table["command"] = arguments
    else:
        table["command"] = [*command, *arguments]
    return ServerTable(kind, table | ({"env": env} if env else {}))


def _command(package: _Package) -> Iterator[str]:
    """
    Raises:
        ValueError: the package cannot be run.
    """
    kind, name, version = package.kind, package.identifier, package.version
    if kind not in _NAMES or package.transport.type not in {"", "stdio"}:
        raise ValueError(f"packages of {one_line(kind, 20) or 'no kind'} with this transport are not supported")
    if _NAMES[kind].fullmatch(name) is None or (version and _VERSION.fullmatch(version) is None):
        raise ValueError("the name or the version of its package is invalid")
    if not _is_default_registry(kind, package.base.rstrip("/")):
        raise ValueError(f"its package is in another registry ({one_line(package.base, 80)})")
    if any(kind != "npm" or argument.value not in _CONFIRMING for argument in package.runtime_arguments):
        runner = {"npm": "npx", "pypi": "uvx", "oci": "docker"}[kind]
        raise ValueError(f"it needs options of {runner}; add its command yourself")
    if kind == "npm":
        yield from ("npx", "-y", f"{name}@{version}" if version else name)
    elif kind == "pypi":
        yield from ("uvx", f"{name}@{version}" if version else name)
    else:
        yield name if not version or ":" in name.rpartition("/")[2] or "@" in name else f"{name}:{version}"


def _is_default_registry(kind: str, address: str) -> bool:
    """Whether the program that runs the packages uses this registry by default; without an address, it does."""
    return not address or hashlib.sha256(address.encode(errors="replace")).hexdigest() in _PUBLIC[kind]


def _values(arguments: list[_Input]) -> Iterator[str]:
    """
    Raises:
        ValueError: a person has to give a value.
    """
    for argument in arguments:
        value = argument.fixed
        label = one_line(argument.name or argument.hint or "an argument", 60)
        if value is None:
            if argument.is_required or argument.value is not None:
                raise ValueError(f"it needs a value for {label}; add its command yourself")
        elif argument.type == "named":
            yield f"{argument.name}={value}"
        else:
            yield value


def _environment(package: _Package) -> Iterator[tuple[str, object]]:
    for variable in package.variables:
        if _VARIABLE.fullmatch(variable.name) is None:
            raise ValueError("the name of a variable is invalid")
        if _OF_RUNNERS.fullmatch(variable.name):
            name = variable.name[:60]
            raise ValueError(f"its variable {name} decides which program runs; add its command yourself")
        if variable.fixed is not None:
            yield variable.name, variable.fixed
        elif variable.is_required or variable.is_secret:
            yield variable.name, {"env": variable.name}
