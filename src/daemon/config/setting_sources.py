"""Where settings come from: defaults < ``toold.toml`` < environment < flags; and what is said of one that is wrong."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import AliasChoices, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from ...protocol.daemon_address import default_state_dir
from ...protocol.name_suggestions import close_names, did_you_mean
from ...sources import anchored
from ...tools import anchored_table
from .settings import CONFIG_FILE, ENV_PREFIX, Settings


class SettingsError(Exception):
    """The settings cannot be used; the message is one line: which setting, where it came from, what is allowed.

    ``by_flag`` is true where a flag of the command line is to blame.
    """

    def __init__(self, message: str, *, by_flag: bool = False) -> None:
        self.by_flag = by_flag
        # Paths and keys that it quotes may have line ends in them.
        super().__init__("".join(char if char.isprintable() else ascii(char)[1:-1] for char in message))


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as somebody gave it, and where."""

    value: object
    origin: str


_PATHS: Final = frozenset({"state_dir", "tls_cert", "tls_key", "workflow_dir", "pipeline_dir", "workspace"})


class _Environment(EnvSettingsSource):
    """How pydantic-settings reads an environment (prefix, aliases, empty is unset), for the mapping handed in."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.env_vars = {name.lower(): value for name, value in env.items() if value}

    def given(self) -> Iterator[tuple[str, _Given]]:
        for name, field in Settings.model_fields.items():
            value, key, _ = self.get_field_value(field, name)
            if value is not None:
                yield name, _Given(value, ENV_PREFIX + name.upper() if key == name else key)


def variables_in(env: Mapping[str, str]) -> list[str]:
    """The variables of an environment that set something."""
    return sorted(given.origin for _, given in _Environment(env).given())


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, _Given]]:
    for name, value in flags.items():
        if value is not None and name != "config":
            yield name, _Given(value, f"--{'no-' if value is False else ''}{name.replace('_', '-')}")


def _from_file(path: Path) -> Iterator[tuple[str, _Given]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); correct --config or TOOLD_CONFIG") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: must be UTF-8 text") from None
    except ValueError as error:  # of a number with too many digits too, which is no TOMLDecodeError
        # The parser's message may quote the text, which may be a key; its position is enough to find the place.
        place = re.search(r"\(at .*\)$", str(error))
        raise SettingsError(f"{path}: is not valid TOML {place.group() if place else ''}".rstrip()) from None
    for name, value in table.items():
        if name not in Settings.model_fields:
            raise SettingsError(f"{path}: has no setting named {_shown(name)}; {_hint(name)}")
        yield name, _Given(value, path.name)


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:60] + "…")


def _hint(name: str) -> str:
    return did_you_mean(close_names(name, Settings.model_fields, n=1)) or "docs/configuration.md lists them"


def _anchored(name: str, given: _Given, base: Path) -> _Given:
    """Relative paths mean the directory of the file that says them, or the one where the daemon starts."""
    if name == "sources":
        return _Given(anchored(given.value, base), given.origin)
    if name == "bind" and isinstance(given.value, Mapping):
        tables = {glob: anchored_table(table, base) for glob, table in given.value.items()}
        return _Given(tables, given.origin)
    if name not in _PATHS or not isinstance(given.value, str | Path | list | tuple):
        return given
    if name != "workspace":
        absolute: object = _absolute(given.value, base)
    else:
        pieces = given.value.split(os.pathsep) if isinstance(given.value, str) else given.value
        directories = [pieces] if isinstance(pieces, Path) else pieces
        absolute = [_absolute(directory, base) for directory in directories if directory]
    return _Given(absolute, given.origin)


def _absolute(path: object, base: Path) -> object:
    return base / Path(path).expanduser() if isinstance(path, str | Path) else path


def load_settings(flags: Mapping[str, object], *, env: Mapping[str, str] = os.environ, cwd: Path) -> Settings:
    """Lay flags over the environment over ``toold.toml`` over the defaults, and check the result.

    Args:
        flags: setting → value as the command line has it; None is not given. ``config`` names the TOML file.
        env: the environment; empty variables count as not set.
        cwd: where relative paths start, where ``toold.toml`` is looked for, and the default workspace.

    Raises:
        SettingsError: a value is not allowed; the message is one line and shows no value but paths.
    """
    named = flags.get("config") or env.get("TOOLD_CONFIG")
    given = {
        "state_dir": _Given(default_state_dir({}), "default"),
        "workspace": _Given([cwd], "the directory where the daemon starts"),
    }
    config = _config_file(named, cwd)
    if config is not None:
        given |= {name: _anchored(name, value, config.parent) for name, value in _from_file(config)}
    for layer in (_Environment(env).given(), _from_flags(flags)):
        given |= {name: _anchored(name, value, cwd) for name, value in layer}
    try:
        settings = Settings(**{name: value.value for name, value in given.items()})  # type: ignore[arg-type] # being checked
        place = config or cwd / CONFIG_FILE
        return settings.read_from(place, config, partial(load_settings, flags, env=env, cwd=cwd))
    except ValidationError as error:
        problems = error.errors(include_url=False)
    sentences = dict.fromkeys(_sentence(details, given) for details in problems)
    by_flag = any(_origin(details, given)[1].startswith("--") for details in problems)
    raise SettingsError("; ".join(sentences), by_flag=by_flag)


def _config_file(named: object, cwd: Path) -> Path | None:
    """The TOML file to read: the one that is named, there or not, else ``toold.toml`` where it is there."""
    if named:
        return cwd / Path(str(named)).expanduser()
    config = cwd / CONFIG_FILE
    return config if config.exists() else None


def _origin(details: ErrorDetails, given: Mapping[str, _Given]) -> tuple[str, str]:
    """Which setting is wrong, and where its value came from."""
    name = details.get("ctx", {}).get("setting") or _field_of(str(details["loc"][0]))
    return name, given[name].origin if name in given else "default"


def _sentence(details: ErrorDetails, given: Mapping[str, _Given]) -> str:
    context = details.get("ctx", {})
    name, origin = _origin(details, given)
    match details["type"]:
        case "extra_forbidden":
            return f"{name} ({origin}): is not a setting; {_hint(name)}"
        case "bool_parsing" | "bool_type":
            said = "must be true or false"
        case "literal_error":
            options = re.findall(r"'([^']+)'", str(context["expected"]))
            meant = did_you_mean(close_names(str(details["input"]), options, n=1))
            said = f"must be {', '.join(options)}" + (f"; {meant}" if meant else "")
        case kind if kind in _WORDS:
            said = _WORDS[kind].format_map(context)
        case _:
            said = details["msg"]
    return f"{name} ({origin}): {said}"


_WORDS: Final[Mapping[str, str]] = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
    "too_short": "must have one entry or more",
}
"""For pydantic's types of error, what is said of a value; the others are this package's own, and say it themselves."""


def _field_of(location: str) -> str:
    """The field that pydantic names by one of its aliases."""
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        if location == name or (isinstance(alias, AliasChoices) and location in alias.choices):
            return name
    return location
