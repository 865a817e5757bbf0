"""The settings of configured providers, ``[providers.NAME]`` in toold.toml; documented in docs/providers.md."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ...protocol.daemon_address import is_loopback
from ...protocol.name_suggestions import close_names, did_you_mean
from ...providers import GLM, KIMI, OPENAI_TYPE, PRESETS, Dialect, ModelGlobs, ProviderPreset, preset_dialect
from ...tools import SecretLocation, SecretUnavailableError, anchored_secret, setting_message
from .amounts import Amounts
from .fallback_settings import FallbackNames

PROVIDERS_PREFIX: Final = "TOOLD_PROVIDERS__"
"""The prefix of variables: ``TOOLD_PROVIDERS__NAME__SETTING``."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
"""The name is the first part of the models' full names."""
MAX_GLOBS: Final = 200
"""The maximum number of globs in a list; each is compared with each model."""
_Globs = Annotated[
    tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)], ...],
    Field(max_length=MAX_GLOBS),
]
NO_KEY_NEEDED: Final = "not needed"
"""The text shown as the origin of the key if the provider needs none."""
_NO_KEY: Final = SecretStr("unused")
"""Sent as the key to servers that need none, because the openai SDK requires a key."""


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class KeyLocation(_Table):
    """The location of a key: a variable of the daemon's environment, or a file."""

    env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _one_location(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise PydanticCustomError("key_location", "must name the location of the key: either env or file")
        return self


class AllowedModels(_Table):
    """Globs of the models that may be used."""

    include: _Globs = ()
    exclude: _Globs = ()

    def globs(self) -> ModelGlobs:
        return ModelGlobs(self.include, self.exclude)


def _allowed_models(value: object) -> object:
    """Accepts a list, or text with commas, as the globs to include."""
    if isinstance(value, str):
        value = [glob for piece in value.split(",") if (glob := piece.strip())]
    return {"include": value} if isinstance(value, list | tuple) else value


class ProviderSettings(_Table):
    """A vendor with an OpenAI-compatible API."""

    type: str = OPENAI_TYPE
    base_url: str = ""
    """Empty: the preset's."""
    api_key: KeyLocation | SecretStr | None = None
    """None stands for the preset's variable, or for no key if the preset has no variable or the base URL is not the
    preset's.
    """
    sdk: Literal["auto", "openai", "http"] = "auto"
    max_in_flight: Annotated[int, Field(ge=1)] = 4
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = 60.0
    headers: Mapping[str, str] = {}
    default_model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] | None = None
    models: Annotated[AllowedModels, BeforeValidator(_allowed_models)] = AllowedModels()
    daily_budget: Amounts = {}
    fallback: FallbackNames = ()
    """Models of other providers to ask if this one fails."""
    allow_http: bool = False
    """Whether the base URL may be http to a host that is not loopback."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.type not in PRESETS:
            hint = did_you_mean(close_names(self.type, PRESETS, n=1))
            types = f"must be one of {', '.join(PRESETS)}" + (f"; {hint}" if hint else "")
            raise PydanticCustomError("provider", "type {types}", {"types": types})
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
            raise PydanticCustomError("provider", "base_url must be a URL with http:// or https://, without a password")
        if parts.scheme == "http" and not is_loopback(parts.hostname) and not self.allow_http:
            message = "base_url is http to another host, which shows key and prompts; use https, or set allow_http"
            raise PydanticCustomError("provider", message)
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", name) or not re.fullmatch(r"[\x20-\x7e]{0,1000}", value):
                raise PydanticCustomError("provider", "headers must be names and values of printable ASCII")
        return self

    @property
    def url(self) -> str:
        return self.base_url or PRESETS[self.type].base_url

    @property
    def dialect(self) -> Dialect:
        return preset_dialect(self.type, self.url)

    @property
    def key_file(self) -> Path | None:
        """The file with the key, which no call may read."""
        return self.api_key.file if isinstance(self.api_key, KeyLocation) else None


class ConfiguredKey(BaseModel):
    """The key of a provider, and the location from which it was read."""

    model_config = ConfigDict(frozen=True)

    key: SecretStr | None
    origin: str
    """A text that says where the key is, or why it cannot be read."""


def read_key(settings: ProviderSettings, env: Mapping[str, str]) -> ConfiguredKey:
    """Reads the provider's key. Never raises: a provider without its key is not available."""
    location = settings.api_key
    if isinstance(location, SecretStr):
        stripped = location.get_secret_value().strip()
        if not re.fullmatch(r"[\x21-\x7e]+", stripped):  # it is sent in a header
            return ConfiguredKey(key=None, origin="api_key must be printable ASCII without spaces")
        return ConfiguredKey(key=SecretStr(stripped), origin="api_key")
    preset = PRESETS[settings.type]
    if location is None and _needs_no_key(preset, settings, env):
        return ConfiguredKey(key=_NO_KEY, origin=NO_KEY_NEEDED)
    where = (
        SecretLocation(preset.key_variable, None) if location is None else SecretLocation(location.env, location.file)
    )
    try:
        return ConfiguredKey(key=SecretStr(where.read_header_value(env)), origin=where.env or str(where.file))
    except SecretUnavailableError as error:
        return ConfiguredKey(key=None, origin=str(error))


def _needs_no_key(preset: ProviderPreset, settings: ProviderSettings, env: Mapping[str, str]) -> bool:
    """Whether no key is sent. The key in a vendor's variable is sent only to this vendor. For servers that operators
    run themselves, the key in the variable, if set, is sent to any address.
    """
    if preset.key_variable is None:
        return True
    return not env.get(preset.key_variable) if preset.own_server else settings.url != preset.base_url


def read_providers(tables: object) -> dict[str, ProviderSettings]:
    """Returns the configured providers by name.

    Raises:
        PydanticCustomError: a table is invalid; the message names the provider and the key, and no secret.
    """
    if not isinstance(tables, Mapping):
        raise _invalid("must be set in toold.toml, as tables [providers.NAME] with type, base_url and their settings")
    return {str(name): _provider(str(name), table) for name, table in tables.items()}


def _provider(name: str, table: object) -> ProviderSettings:
    if not _NAME.fullmatch(name):
        raise _invalid(f"has the name {name[:64]!r}; names are a letter and up to 31 more of a-z, 0-9, _ and -")
    if name in (KIMI.name, GLM.name):
        raise _invalid(f"{name} is built in; its settings are {name}_api_key, {name}_base_url and others")
    if isinstance(table, ProviderSettings):
        return table
    if not isinstance(table, Mapping):
        raise _invalid(f"[providers.{name}] must be a table")
    try:
        return ProviderSettings.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise _invalid("; ".join(dict.fromkeys(f"[providers.{name}] {_sentence(problem)}" for problem in problems)))


def _sentence(problem: Any) -> str:
    key = next((step for step in problem["loc"] if isinstance(step, str)), "")
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        hint = did_you_mean(close_names(key, ProviderSettings.model_fields, n=1))
        return f"{key} is not a setting; {hint or 'settings: ' + ', '.join(ProviderSettings.model_fields)}"
    if key == "api_key":
        return "api_key must be { env = … }, { file = … } or text"
    return f"{key} {setting_message(problem)}".strip()


def _invalid(message: str) -> PydanticCustomError:
    return PydanticCustomError("providers", "{message}", {"message": message})


def providers_in(env: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Returns the settings of providers in variables: ``TOOLD_PROVIDERS__NAME__SETTING``, by name and setting."""
    tables: dict[str, dict[str, str]] = {}
    for variable, value in env.items():
        if value and variable.upper().startswith(PROVIDERS_PREFIX):
            name, _, setting = variable[len(PROVIDERS_PREFIX) :].lower().partition("__")
            tables.setdefault(name, {})[setting] = value
    return tables


def merged(tables: object, others: Mapping[str, Mapping[str, str]]) -> object:
    """Returns the tables with the settings of ``others`` added or replaced."""
    if not others or not isinstance(tables, Mapping):
        return tables
    extended = {name: dict(table) if isinstance(table, Mapping) else table for name, table in tables.items()}
    for name, table in others.items():
        own = extended.get(name, {})
        extended[name] = {**own, **table} if isinstance(own, Mapping) else own
    return extended


def anchored_keys(tables: object, base: Path) -> object:
    """Returns the tables with the files of keys resolved in ``base``."""
    if not isinstance(tables, Mapping):
        return tables
    return {name: _anchored(table, base) for name, table in tables.items()}


def _anchored(table: object, base: Path) -> object:
    if isinstance(table, Mapping) and "api_key" in table:
        return {**table, "api_key": anchored_secret(table["api_key"], base)}
    return table
