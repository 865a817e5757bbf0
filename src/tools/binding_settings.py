"""The settings of bound arguments: ``[bind."TOOL-GLOB"]`` with ``ARGUMENT = "value" | {env = "NAME"} | {file =
"path"}``.

Described in docs/bound-arguments.md.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from ..protocol.home_directory import expand_home
from ..protocol.tool_call import Json
from .secret_location import SecretLocation, SecretUnavailableError

_GLOB: Final = re.compile(r"[A-Za-z0-9_*?\[\]!-]{1,200}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACES: Final = ("value", "env", "file")


class BindingError(ValueError):
    """A bound argument cannot be used; the message names the argument and the reason, without its value."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One argument that callers of some tools neither see nor send."""

    tools: str
    """A glob of tool names."""
    argument: str
    value: Json = field(default=None, repr=False)
    env: str | None = None
    file: Path | None = None
    source: str | None = None
    """If set, the binding applies only to tools of this source."""

    @property
    def place(self) -> str:
        """Its place in the configuration."""
        return (
            f"[bind.{self.tools!r}] {self.argument}"
            if self.source is None
            else f"[sources.{self.source}.bind] {self.argument}"
        )

    @property
    def secret(self) -> bool:
        """Whether the value is stored outside of the configuration; it is then masked everywhere in results."""
        return self.env is not None or self.file is not None

    def read(self, env: Mapping[str, str] = os.environ) -> Json:
        """The current value.

        Raises:
            BindingError: the value cannot be read.
        """
        if not self.secret:
            return self.value
        try:
            return SecretLocation(self.env, self.file).read(env)
        except SecretUnavailableError as error:
            raise BindingError(f"{self.place}: {error}") from None


def read_bindings(tables: object) -> tuple[Binding, ...]:
    """The operator's bound arguments from the configuration's tables.

    Raises:
        BindingError: one is invalid.
    """
    if isinstance(tables, tuple) and all(isinstance(binding, Binding) for binding in tables):
        return tables
    if not isinstance(tables, Mapping):
        raise BindingError('must be set in toold.toml, as tables [bind."TOOL"] with the arguments and their values')
    bindings: list[Binding] = []
    for glob, table in tables.items():
        if not isinstance(glob, str) or not _GLOB.fullmatch(glob):
            raise BindingError(f"[bind] has {str(glob)[:64]!r}, which is neither a tool name nor a glob such as crm_*")
        if not isinstance(table, Mapping):
            raise BindingError(f"[bind.{glob!r}] must be a table of arguments and their values")
        bindings += _read_table(glob, table, None)
    return tuple(bindings)


def read_source_bindings(source: str, table: object) -> tuple[Binding, ...]:
    """The bound arguments of one source's tools, ``[sources.NAME.bind]``.

    Raises:
        BindingError: one is invalid.
    """
    if isinstance(table, tuple) and all(isinstance(binding, Binding) for binding in table):
        return table
    if not isinstance(table, Mapping):
        raise BindingError(f"[sources.{source}] bind must be a table of arguments and their values")
    return tuple(_read_table("*", table, source))


def anchored_table(table: object, base: Path) -> object:
    """A table of arguments with file paths resolved against ``base``; invalid values are left for validation."""
    if not isinstance(table, Mapping):
        return table
    return {
        name: {**value, "file": str(base / expand_home(file))}
        if isinstance(value, Mapping) and isinstance(file := value.get("file"), str) and file
        else value
        for name, value in table.items()
    }


def _read_table(glob: str, table: Mapping[Any, Any], source: str | None) -> list[Binding]:
    return [_read(glob, str(argument), value, source) for argument, value in table.items()]


def _read(glob: str, argument: str, value: Any, source: str | None) -> Binding:
    place = Binding(glob, argument, source=source).place
    if not argument or len(argument) > 200:
        raise BindingError(f"{place}: is not an argument name")
    if not isinstance(value, Mapping):
        return Binding(glob, argument, _plain(place, value), source=source)
    if len(value) != 1 or next(iter(value)) not in _PLACES:
        raise BindingError(
            f'{place}: must be a value, {{value = …}}, {{env = "NAME"}} or {{file = "path"}}; a value that is a table '
            "itself goes under value"
        )
    [(kind, content)] = value.items()
    if kind == "value":
        return Binding(glob, argument, _plain(place, content), source=source)
    if not isinstance(content, str) or not content or (kind == "env" and not _VARIABLE.fullmatch(content)):
        raise BindingError(f"{place}: {kind} must be the {'name of a variable' if kind == 'env' else 'path of a file'}")
    if kind == "env":
        return Binding(glob, argument, env=content, source=source)
    return Binding(glob, argument, file=Path(content), source=source)


def _plain(place: str, value: Any) -> Json:
    try:
        plain: Json = msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError):
        raise BindingError(f"{place}: the value cannot be represented in JSON") from None
    return plain
