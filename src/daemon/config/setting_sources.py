"""Loads the settings and formats the errors.

Defaults < variables of earlier servers < ``toold.toml`` < environment < flags.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import AliasChoices, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import EnvSettingsSource

from ...agent_registry import anchored_registry
from ...call_hooks import anchored_hooks
from ...deployment import anchored_deploy
from ...knowledge import anchored_collections
from ...prompts import anchored_prompts
from ...protocol.daemon_address import CONFIG_FILE, default_state_dir
from ...protocol.home_directory import expand_home
from ...protocol.name_suggestions import close_names, did_you_mean
from ...sources import anchored
from ...tools import anchored_table, setting_message
from ...user_credentials import anchored_vault
from ...zenml import anchored_zenml
from .former_variables import FormerValue, read_former
from .otel_settings import anchored_otel, merged_otel
from .provider_settings import anchored_keys, merged, providers_in, read_key
from .settings import ENV_PREFIX, Settings


class SettingsError(Exception):
    """The settings are invalid.

    The message is one line: the setting, its origin, the allowed values. ``by_flag`` is true if a command line flag is
    invalid.
    """

    def __init__(self, message: str, *, by_flag: bool = False) -> None:
        self.by_flag = by_flag
        # Quoted paths and keys may contain newlines.
        super().__init__("".join(char if char.isprintable() else ascii(char)[1:-1] for char in message))


@dataclass(frozen=True, slots=True)
class _RawValue:
    """A value before validation, and its origin."""

    value: object
    origin: str


_PATHS: Final = frozenset(
    {
        *("state_dir", "tls_cert", "tls_key", "a2a_card_key", "workflow_dir", "pipeline_dir", "agent_dir"),
        *("workspace", "cluster_secret_file"),
    }
)


class _Environment(EnvSettingsSource):
    """Reads a mapping like an environment, by the rules of pydantic-settings: prefix, aliases, empty means unset."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.env_vars = {name.lower(): value for name, value in env.items() if value}

    def values(self) -> Iterator[tuple[str, _RawValue]]:
        for name, field in Settings.model_fields.items():
            value, key, _ = self.get_field_value(field, name)
            if value is not None:
                yield name, _RawValue(value, ENV_PREFIX + name.upper() if key == name else key)


def variables_in(env: Mapping[str, str]) -> list[str]:
    """The variables of an environment that set a setting."""
    current = dict(_Environment(env).values())
    former = read_former(env, current)
    values = [*former.values, *(table for tables in former.tables.values() for table in tables.values())]
    return sorted({value.origin for value in current.values()} | {value.variable for value in values})


def _with_tables(setting: str, own: _RawValue | None, tables: Mapping[str, FormerValue], notes: list[str]) -> _RawValue:
    """The tables of a setting, with those from variables added unless their names are taken."""
    configured = {} if own is None else own.value
    if not isinstance(configured, Mapping):
        return _RawValue(configured, own.origin if own else "default")
    added = {name: table for name, table in tables.items() if name not in configured}
    notes.extend(
        f"{tables[name].variable} is ignored for {setting}.{name}: [{setting}.{name}] is set already"
        for name in tables.keys() - added.keys()
    )
    origin = own.origin if own else ", ".join(dict.fromkeys(table.variable for table in tables.values()))
    return _RawValue({**configured, **{name: table.value for name, table in added.items()}}, origin)


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, _RawValue]]:
    for name, value in flags.items():
        if value is not None and name != "config":
            yield name, _RawValue(value, f"--{'no-' if value is False else ''}{name.replace('_', '-')}")


def _from_file(path: Path, text: str | None) -> Iterator[tuple[str, _RawValue]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8") if text is None else text)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); fix --config or TOOLD_CONFIG") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: must be UTF-8 text") from None
    except RecursionError:
        raise SettingsError(f"{path}: is not valid TOML: its values are nested too deeply") from None
    except ValueError as error:  # not TOMLDecodeError: a number with too many digits raises ValueError
        # The parser's message may quote a secret, so only its position is shown.
        place = re.search(r"\(at .*\)$", str(error))
        raise SettingsError(f"{path}: is not valid TOML {place.group() if place else ''}".rstrip()) from None
    for name, value in table.items():
        if name not in Settings.model_fields:
            raise SettingsError(f"{path}: unknown setting {_shown(name)}; {_hint(name)}")
        yield name, _RawValue(value, path.name)


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:60] + "…")


def _hint(name: str) -> str:
    return did_you_mean(close_names(name, Settings.model_fields, n=1)) or "see docs/configuration.md"


_ANCHORED_TABLES: Final[Mapping[str, Callable[[object, Path], object]]] = {
    "providers": anchored_keys,
    "otel": anchored_otel,
    "registry": anchored_registry,
    "deploy": anchored_deploy,
    "knowledge": anchored_collections,
    "sources": anchored,
    "hooks": anchored_hooks,
    "user_credentials": anchored_vault,
}
"""The tables with paths in them, and the functions that resolve these paths."""


def _anchored(name: str, raw: _RawValue, base: Path) -> _RawValue:
    """The value with its relative paths resolved in ``base``: the file's directory, or the working directory."""
    if name in _ANCHORED_TABLES:
        return _RawValue(_ANCHORED_TABLES[name](raw.value, base), raw.origin)
    if name == "bind" and isinstance(raw.value, Mapping):
        tables = {glob: anchored_table(table, base) for glob, table in raw.value.items()}
        return _RawValue(tables, raw.origin)
    if name not in _PATHS or not isinstance(raw.value, str | Path | list | tuple):
        return raw
    if name != "workspace":
        absolute: object = _absolute(raw.value, base)
    else:
        pieces = raw.value.split(os.pathsep) if isinstance(raw.value, str) else raw.value
        directories = [pieces] if isinstance(pieces, Path) else pieces
        absolute = [_absolute(directory, base) for directory in directories if directory]
    return _RawValue(absolute, raw.origin)


def _absolute(path: object, base: Path) -> object:
    return base / expand_home(path) if isinstance(path, str | Path) else path


def load_settings(
    flags: Mapping[str, object], *, env: Mapping[str, str] = os.environ, cwd: Path, config_text: str | None = None
) -> Settings:
    """Merge flags over the environment over ``toold.toml`` over the defaults, and validate the result.

    Args:
        flags: setting → value from the command line; None means not given. ``config`` names the TOML file.
        env: the environment; empty variables count as unset.
        cwd: the directory of relative paths, the first one where ``toold.toml`` is searched, and the default workspace.
        config_text: a text instead of the content of the file that ``config`` names, to check it before it is written.

    Raises:
        SettingsError: a value is invalid; the message is one line and quotes no value except paths.
    """
    places = config_places(flags, env, cwd)
    named = flags.get("config") or env.get("TOOLD_CONFIG")
    config = places[0] if named else next((place for place in places if _exists(place)), None)
    raw = {
        "state_dir": _RawValue(default_state_dir({}), "default"),
        "workspace": _RawValue([cwd], "the directory where the daemon starts"),
    }
    if config is not None:
        raw |= {name: _anchored(name, value, config.parent) for name, value in _from_file(config, config_text)}
    for layer in (_Environment(env).values(), _from_flags(flags)):
        raw |= {name: _anchored(name, value, cwd) for name, value in layer}
    if variables := providers_in(env):
        table = merged(raw["providers"].value if "providers" in raw else {}, variables)
        raw["providers"] = _RawValue(table, raw["providers"].origin if "providers" in raw else "environment")
    try:
        otel = merged_otel(raw["otel"].value if "otel" in raw else None, env)
    except PydanticCustomError as error:
        raise SettingsError(f"otel (environment): {error.message()}") from None
    if otel is not None:
        raw["otel"] = _RawValue(otel, raw["otel"].origin if "otel" in raw else "environment")
    former = read_former(env, raw)
    raw |= {value.setting: _RawValue(value.value, value.variable) for value in former.values}
    notes = list(former.notes)
    for setting, tables in former.tables.items():
        raw[setting] = _with_tables(setting, raw.get(setting), tables, notes)
    if "zenml" in raw:
        base = config.parent if config else cwd
        raw["zenml"] = _RawValue(anchored_zenml(raw["zenml"].value, base, env), raw["zenml"].origin)
    prompts = raw.get("prompts", _RawValue({}, "default"))
    raw["prompts"] = _RawValue(anchored_prompts(prompts.value, config.parent if config else cwd), prompts.origin)
    try:
        settings = Settings(**{name: value.value for name, value in raw.items()})  # type: ignore[arg-type] # validated here
        origins = {name: value.origin for name, value in raw.items() if value.origin != "default"}
        keys = {name: read_key(provider, env) for name, provider in settings.providers.items()}
        load = partial(load_settings, flags, env=env, cwd=cwd)
        return settings.with_origin(places, config, load, origins, tuple(notes), keys)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    sentences = dict.fromkeys(_sentence(details, raw) for details in problems)
    by_flag = any(_origin(details, raw)[1].startswith("--") for details in problems)
    raise SettingsError("; ".join(sentences), by_flag=by_flag)


def config_places(flags: Mapping[str, object], env: Mapping[str, str], cwd: Path) -> tuple[Path, ...]:
    """The places of the settings file: the named one, or otherwise the working directory and the state directory. The
    first file that exists is read."""
    named = flags.get("config") or env.get("TOOLD_CONFIG")
    if named:
        return (cwd / expand_home(str(named)),)
    flag = flags.get("state_dir")
    state_dir = cwd / (expand_home(str(flag)) if flag else default_state_dir(env))
    return tuple(dict.fromkeys((cwd / CONFIG_FILE, state_dir / CONFIG_FILE)))


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # for example, another user's state directory; the start reports it
        return False


def _origin(details: ErrorDetails, raw: Mapping[str, _RawValue]) -> tuple[str, str]:
    """The invalid setting and the origin of its value."""
    name = details.get("ctx", {}).get("setting") or _field_of(str(details["loc"][0]))
    return name, raw[name].origin if name in raw else "default"


def _sentence(details: ErrorDetails, raw: Mapping[str, _RawValue]) -> str:
    name, origin = _origin(details, raw)
    if details["type"] == "extra_forbidden":
        return f"{name} ({origin}): is not a setting; {_hint(name)}"
    return f"{name} ({origin}): {setting_message(details)}"


def _field_of(location: str) -> str:
    """The field whose name or alias is ``location``."""
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        if location == name or (isinstance(alias, AliasChoices) and location in alias.choices):
            return name
    return location
