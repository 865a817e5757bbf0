"""The settings of hooks, ``[hooks.NAME]`` in toold.toml; documented in docs/hooks.md."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.daemon_address import is_loopback
from ..protocol.home_directory import expand_home
from ..sources import Environment, Hosts, HttpUrl, SecretTable, read_keyed_table
from ..tools import SecretLocation, anchored_secret

MAX_HOOKS: Final = 20
"""The maximum number of hooks. Each call asks the hooks that cover it one after the other."""

HookEvent = Literal["before", "after"]
"""Before a call starts, and after its tool has returned."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_Globs = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...], Field(min_length=1, max_length=100)
]
_Argument = Annotated[str, StringConstraints(max_length=10_000)]


class HookSettings(BaseModel):
    """A program or a server that is asked about calls."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: HttpUrl | None = None
    """The address that gets a POST for each question."""
    command: Annotated[tuple[_Argument, ...], Field(min_length=1, max_length=200)] | None = None
    """The program, and its arguments, that gets the questions as lines."""
    cwd: Path | None = None
    """The program's working directory; by default, the directory of toold.toml."""
    env: Environment = {}
    """The program's environment variables."""
    key: SecretTable | None = None
    """The key, sent as ``Authorization: Bearer`` to ``url``."""
    allow_private: Hosts = False
    """Whether the address of ``url`` may be loopback or private, or the hosts for which it may."""
    allow_http: bool = False
    """Whether ``url`` may be http to a host that is not loopback."""
    events: Annotated[tuple[HookEvent, ...], Field(min_length=1, max_length=2)] = ("before", "after")
    tools: _Globs = ("*",)
    principals: _Globs = ("*",)
    timeout_s: Annotated[float, Field(gt=0, le=300, allow_inf_nan=False)] = 5.0
    """The time limit for an answer."""
    on_failure: Literal["refuse", "allow"] = "refuse"
    """The outcome of a call if the hook gives no usable answer."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise PydanticCustomError("hook", "must have either url or command")
        if self.url is None and (self.key is not None or self.allow_private is not False or self.allow_http):
            raise PydanticCustomError("hook", "key, allow_private and allow_http require url")
        if self.command is None and (self.env or self.cwd is not None):
            raise PydanticCustomError("hook", "env and cwd require command")
        if self.command is not None and (not self.command[0] or any("\0" in part for part in self.command)):
            raise PydanticCustomError("hook", "command must begin with a program, and have no NUL characters")
        parts = urlsplit(self.url or "")
        if parts.scheme.lower() == "http" and not is_loopback(parts.hostname or "") and not self.allow_http:
            message = (
                "url uses http to another host, so requests can be changed in transit; use https, or set allow_http"
            )
            raise PydanticCustomError("hook", message)
        return self

    def covers(self, event: HookEvent, tool: str, principal: str) -> bool:
        """Whether the hook is asked about this event of a call."""
        return (
            event in self.events
            and any(fnmatchcase(tool, glob) for glob in self.tools)
            and any(fnmatchcase(principal, glob) for glob in self.principals)
        )

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of the hook's secrets."""
        variables = (value for value in self.env.values() if isinstance(value, SecretLocation))
        return (*variables, *(() if self.key is None else (self.key.secret,)))


class HookSettingsError(ValueError):
    """Invalid settings; the message names the hook and the key, never the value."""


def read_hooks(tables: object) -> dict[str, HookSettings]:
    """Return the hooks by name, in the order of the configuration.

    Raises:
        HookSettingsError: the settings are invalid.
    """
    if not isinstance(tables, Mapping):
        raise HookSettingsError("must be tables of toold.toml: [hooks.NAME] with url or command")
    if len(tables) > MAX_HOOKS:
        raise HookSettingsError(f"there are {len(tables)} hooks; at most {MAX_HOOKS} are allowed")
    hooks: dict[str, HookSettings] = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(str(name)):
            raise HookSettingsError("a hook's name is a letter and up to 31 more of A-Z, a-z, 0-9, _ and -")
        hooks[name] = _read_hook(name, table)
    return hooks


def _read_hook(name: str, table: Any) -> HookSettings:
    expected = f"[hooks.{name}] with url or command"
    try:
        return read_keyed_table(table, HookSettings, HookSettingsError, expected=expected, fields=_fields)
    except HookSettingsError as error:
        raise HookSettingsError(f"{name}: {error}") from None


def _fields(_: Sequence[str]) -> list[str]:
    return list(HookSettings.model_fields)


def anchored_hooks(tables: object, base: Path) -> object:
    """Return the tables with relative paths resolved in ``base``. Other values are left to validation."""
    if not isinstance(tables, Mapping):
        return tables
    return {name: _anchored(table, base) if isinstance(table, Mapping) else table for name, table in tables.items()}


def _anchored(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    anchored = dict(table)
    if "key" in table:
        anchored["key"] = anchored_secret(table["key"], base)
    if isinstance(env := table.get("env"), Mapping):
        anchored["env"] = {name: anchored_secret(value, base) for name, value in env.items()}
    if "command" in table:
        cwd = table.get("cwd", "")
        anchored["cwd"] = base / expand_home(cwd) if isinstance(cwd, str) else cwd
    return anchored
