"""Converts MCP servers of editors' configuration files to sources of ``toold.toml``. Pure.

Secrets are returned separately, to be written to files to which the source refers.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from ...audit import is_secret_name, redact_text

_SERVER_KEYS: Final = ("mcpServers", "servers", "context_servers", "mcp_servers")
_PLACEHOLDER: Final = re.compile(r"\$\{(?:(?P<kind>env|input):)?(?P<name>[^}:]+)(?::-?[^}]*)?\}|\{env:(?P<plain>\w+)\}")
_HARMLESS: Final = re.compile(
    r"-?[0-9.]{0,15}|true|false|yes|no|on|off|debug|info|warn|warning|error|production|development|test|stdio|quiet"
    r"|[A-Za-z]{2}([_-][A-Za-z]{2})?(\.UTF-8)?|https?://[\w.-]+(:\d+)?/?",
    re.IGNORECASE,
)
"""Values of variables that are certainly not secrets: numbers, switches, levels, locales, servers. A URL with a path
may be a secret."""
_PATH: Final = re.compile(r"(~|\.{1,2})?(/[\w.@ -]+)+/?")
_PLAIN_HEADERS: Final = frozenset({"accept", "content-type", "user-agent"})


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """A server as a source."""

    name: str
    table: Mapping[str, Any]
    """``[sources.NAME]``."""
    secrets: Mapping[Path, str] = field(default_factory=dict)
    """The values to write to files, which the table refers to."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedServer:
    """A server that does not become a source; the reason quotes no value."""

    name: str
    reason: str


class _NotImportableError(Exception):
    pass


def servers_in(config: Mapping[str, Any], project: str) -> Mapping[str, Any]:
    """The entries of an editor's file by name, in any of the common shapes; empty if there are none.

    ``project`` is a directory; servers that Claude Code stores for this directory are included.
    """
    projects = config.get("projects")
    of_project = projects.get(project) if isinstance(projects, Mapping) else None
    places = [config, config.get("mcp"), of_project]  # VS Code's settings.json has them below "mcp"
    entries: dict[str, Any] = {}
    for place in places:
        if isinstance(place, Mapping):
            for key in _SERVER_KEYS:
                if isinstance(place.get(key), Mapping):
                    entries |= place[key]
    if not entries:  # OpenCode, and files that have only the servers
        for place in (config.get("mcp"), config):
            if isinstance(place, Mapping) and place and all(map(_is_entry, place.values())):
                return place
    return entries


def _is_entry(value: object) -> bool:
    return isinstance(value, Mapping) and not {"command", "url", "serverUrl", "httpUrl"}.isdisjoint(value)


def import_server(
    title: str, entry: object, name: str, *, secrets: Path, directory: Path, home: Path
) -> ImportedServer | SkippedServer:
    """The entry ``title`` as the source ``name``.

    Args:
        secrets: the directory for the files with secrets.
        directory: the directory that relative paths start from.
        home: the home directory.
    """
    if not isinstance(entry, Mapping):
        return SkippedServer(title, "its entry is not an object")
    try:
        return _Import(name, entry, secrets, directory, home).imported()
    except _NotImportableError as reason:
        return SkippedServer(title, str(reason))


def source_name(title: str, taken: set[str]) -> str:
    """The name of the source for a server: a letter and up to 31 letters, digits, ``_`` and ``-``, not in ``taken``."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", title.rpartition("/")[2]).strip("-_") or "server"
    name = (name if name[0].isalpha() else f"s-{name}")[:32]
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name[:29]}-{number}", number + 1
    return unique


class _Import:
    """Converts one entry to a source."""

    def __init__(self, name: str, entry: Mapping[str, Any], secrets: Path, directory: Path, home: Path) -> None:
        self._name = name
        self._entry = dict(entry)
        if isinstance(entry.get("command"), Mapping):  # Zed's older shape: {"command": {"path", "args", "env"}}
            self._entry |= {"command": None, **entry["command"]}
            self._entry["command"] = entry["command"].get("path")
        self._directory = secrets
        self._base = directory
        self._home = home
        self._secrets: dict[Path, str] = {}
        self._notes: list[str] = []

    def imported(self) -> ImportedServer:
        entry = self._entry
        if entry.get("disabled") is True or entry.get("enabled") is False:
            raise _NotImportableError("it is disabled in the editor")
        url = next((entry[key] for key in ("url", "serverUrl", "httpUrl") if entry.get(key)), None)
        if entry.get("command"):
            table = self._program()
        elif isinstance(url, str):
            table = self._remote(url)
        else:
            raise _NotImportableError("it has neither a command nor a URL")
        return ImportedServer(self._name, {"type": "mcp"} | table, self._secrets, tuple(self._notes))

    # --- programs ----------------------------------------------------------------------------------------------------

    def _program(self) -> dict[str, Any]:
        command, arguments = self._entry["command"], self._entry.get("args") or []
        words = [*(command if isinstance(command, list) else [command]), *arguments]
        if not all(isinstance(word, str) for word in words):
            raise _NotImportableError("its command is not a list of texts")
        if Path(words[0]).name == "toold" or words[1:4] == ["-m", "toold", "mcp"]:
            raise _NotImportableError("it is toold itself")
        if self._entry.get("envFile"):
            raise _NotImportableError("its variables are in a file (envFile); add them to env first")
        own = self._entry.get("env") or self._entry.get("environment") or {}
        if not isinstance(own, Mapping):
            raise _NotImportableError("its env is not an object")
        command = [self._word(word, index, words, own) for index, word in enumerate(words)]
        variables = {name: value for name, given in own.items() if (value := self._variable(name, given)) is not None}
        passed = self._entry.get("env_vars") or []  # Codex: variables that are passed on
        variables |= {name: self._from_environment(name) for name in passed if isinstance(name, str)}
        cwd = self._entry.get("cwd")
        table: dict[str, Any] = {"command": command}
        if isinstance(cwd, str) and cwd:
            table["cwd"] = str(self._base / self._plain(cwd, "cwd"))
        if variables:
            table["env"] = variables
        return table

    def _word(self, word: str, index: int, words: list[str], own: Mapping[str, Any]) -> str:
        """A word of the command. If the entry itself sets the referenced variables, the references are kept; the
        program expands them."""
        names = {match["name"] for match in _PLACEHOLDER.finditer(word)}
        text = word if names and names <= own.keys() else self._plain(word, f"argument {index}")
        flag = words[index - 1].lstrip("-") if index and words[index - 1].startswith("-") else ""
        if redact_text(word) != word or (flag and "=" not in flag and is_secret_name(flag) and not names):
            raise _NotImportableError(f"argument {index} looks like a secret; let the program read it from a variable")
        return text

    def _variable(self, name: str, given: object) -> object:
        if given is None:
            return None
        text = str(given).lower() if isinstance(given, bool) else str(given)
        whole = _PLACEHOLDER.fullmatch(text)
        if whole and (whole["name"] or "") not in {"userHome", "workspaceFolder"}:
            return self._reference(whole)
        if _PLACEHOLDER.search(text):
            text = self._plain(text, f"variable {name}")
        if (
            not is_secret_name(name)
            and redact_text(text) == text
            and (_HARMLESS.fullmatch(text) or _PATH.fullmatch(text))
        ):
            return text
        return self._secret(name, text)

    def _plain(self, text: str, what: str) -> str:
        text = text.replace("${userHome}", str(self._home))
        if _PLACEHOLDER.search(text):
            raise _NotImportableError(f"its {what} depends on the editor (${{…}}); write the value instead")
        return str(self._home) + text[1:] if text == "~" or text.startswith("~/") else text

    # --- addresses ---------------------------------------------------------------------------------------------------

    def _remote(self, url: str) -> dict[str, Any]:
        kind = str(self._entry.get("type") or self._entry.get("transport") or "")
        parts = urlsplit(self._plain(url, "URL"))
        if parts.username is not None or any(is_secret_name(key) for key, _ in parse_qsl(parts.query)):
            raise _NotImportableError("its URL has a secret; send it in a header instead")
        table: dict[str, Any] = {"url": url}
        if kind == "sse" or (not kind and parts.path.rstrip("/").endswith("/sse")):
            table["transport"] = "sse"
        if _is_private(parts.hostname or ""):
            table["allow_private"] = [parts.hostname]
        auth = self._auth()
        return table if auth is None else table | {"auth": auth}

    def _auth(self) -> dict[str, Any] | None:
        entry = self._entry
        if isinstance(entry.get("bearer_token_env_var"), str):
            return {"type": "bearer", **self._from_environment(entry["bearer_token_env_var"])}
        headers = dict(entry.get("headers") or entry.get("http_headers") or {})
        headers |= {name: f"${{{variable}}}" for name, variable in (entry.get("env_http_headers") or {}).items()}
        sent = {name: str(value) for name, value in headers.items() if name.lower() not in _PLAIN_HEADERS}
        if not sent:
            return None
        if len(sent) > 1:
            raise _NotImportableError(f"it sends {len(sent)} headers ({', '.join(sent)}); a source sends one")
        ((name, value),) = sent.items()
        scheme, _, rest = value.partition(" ")
        if name.lower() == "authorization" and scheme.lower() == "bearer":
            return {"type": "bearer", **self._location(name, rest.strip())}
        if name.lower() == "authorization" and scheme.lower() == "basic":
            return self._basic(rest.strip())
        return {"type": "api_key", "in": "header", "name": name, **self._location(name, value)}

    def _basic(self, encoded: str) -> dict[str, Any]:
        try:
            username, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise _NotImportableError("its Basic authorization is not a name and a password in base64") from None
        return {"type": "basic", "username": username, **self._secret("password", password)}

    def _location(self, name: str, value: str) -> dict[str, str]:
        whole = _PLACEHOLDER.fullmatch(value)
        if whole:
            return self._reference(whole)
        return self._secret(name, self._plain(value, f"header {name}"))

    # --- secrets -----------------------------------------------------------------------------------------------------

    def _reference(self, placeholder: re.Match[str]) -> dict[str, str]:
        name = placeholder["name"] or placeholder["plain"]
        if placeholder["kind"] == "input":  # the editor asks for it; the daemon cannot
            file = self._file(name)
            self._notes.append(f"write the value of {name} into {file} (mode 600)")
            return {"file": str(file)}
        variable = re.sub(r"\W+", "_", name)
        return self._from_environment(variable if re.match(r"[A-Za-z_]", variable) else f"V_{variable}")

    def _from_environment(self, variable: str) -> dict[str, str]:
        self._notes.append(f"needs the variable {variable} in the daemon's environment")
        return {"env": variable}

    def _secret(self, name: str, value: str) -> dict[str, str]:
        if not value or any(char in value for char in "\r\n\0"):
            raise _NotImportableError(f"the value of {name} is empty or has several lines")
        file = self._file(name)
        self._secrets[file] = value
        return {"file": str(file)}

    def _file(self, name: str) -> Path:
        """The file of a secret."""
        return self._directory / f"{self._name}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}"


def _is_private(host: str) -> bool:
    """Whether the host is this machine or has a private address, so that requests to it have to be allowed."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
