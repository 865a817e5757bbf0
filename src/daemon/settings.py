"""The daemon's settings: defaults < ``toold.toml`` < environment < flags. docs/configuration.md lists them all."""

import os
import re
import ssl
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AliasChoices, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from ..protocol.calls import DEFAULT_TIMEOUT_S, MAX_FRAME_BYTES, MAX_TIMEOUT_S
from ..protocol.rendezvous import DEFAULT_HOST, DEFAULT_HTTP_PORT, DEFAULT_PORT, default_state_dir, is_loopback
from ..protocol.suggest import close_names, did_you_mean
from .setting_types import (
    ApiKey,
    CaseInsensitive,
    Count,
    Folders,
    FrameBytes,
    Host,
    HttpUrl,
    Origins,
    Port,
    ProgressInterval,
    Seconds,
    Token,
    Word,
    tls_context,
)

CONFIG_FILE: Final = "toold.toml"
"""Read from the folder where the daemon starts, unless ``--config`` or ``TOOLD_CONFIG`` names another file."""
ENV_PREFIX: Final = "TOOLD_"
KIMI_BASE_URL: Final = "https://api.moonshot.ai/v1"
"""Moonshot's documented endpoint for the ``openai`` SDK."""
GLM_BASE_URL: Final = "https://open.bigmodel.cn/api/paas/v4/"
"""Zhipu's documented endpoint, the default of the ``zhipuai`` SDK."""


class SettingsError(Exception):
    """The settings cannot be used; the message is one line: which setting, where it came from, what is allowed."""

    def __init__(self, message: str) -> None:
        # Paths and keys that it quotes may have line ends in them.
        super().__init__("".join(char if char.isprintable() else ascii(char)[1:-1] for char in message))


class Settings(BaseSettings):
    """What the operator decided. ``load_settings`` makes it; tests may give fields by name."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    # Where it listens.
    host: Host = DEFAULT_HOST
    port: Port = DEFAULT_PORT
    http_port: Port = DEFAULT_HTTP_PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allowed_origins: Origins = ()

    # Who may come in, and what it may read.
    state_dir: Path = Field(default_factory=lambda: default_state_dir({}))
    token: Token | None = None
    auth: bool = True
    workspace: Folders = Field(default_factory=lambda: (Path.cwd(),))

    # The vendors.
    simulate: bool | None = None
    default_model: Word | None = None
    kimi_api_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("TOOLD_KIMI_API_KEY", "KIMI_API_KEY", "MOONSHOT_API_KEY")
    )
    kimi_base_url: HttpUrl = Field(KIMI_BASE_URL, validation_alias=AliasChoices("TOOLD_KIMI_BASE_URL", "KIMI_BASE_URL"))
    kimi_sdk: Annotated[Literal["auto", "openai", "http"], CaseInsensitive] = "auto"
    glm_api_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("TOOLD_GLM_API_KEY", "GLM_API_KEY", "ZHIPUAI_API_KEY")
    )
    glm_base_url: HttpUrl = Field(GLM_BASE_URL, validation_alias=AliasChoices("TOOLD_GLM_BASE_URL", "GLM_BASE_URL"))
    glm_sdk: Annotated[Literal["auto", "zhipuai", "zai", "http"], CaseInsensitive] = "auto"
    supabase_url: HttpUrl | None = Field(None, validation_alias=AliasChoices("TOOLD_SUPABASE_URL", "SUPABASE_URL"))
    supabase_service_role_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("TOOLD_SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SERVICE_ROLE_KEY")
    )

    # What may run and wait at once.
    max_running: Count = 24
    max_running_per_session: Count = 8
    max_accepted_per_session: Count = 32
    max_waiting: Count = 1000
    kimi_concurrency: Count = 6
    glm_concurrency: Count = 4
    max_connections: Count = 5000
    max_frame_bytes: FrameBytes = MAX_FRAME_BYTES

    # Time, in seconds.
    default_timeout_s: Seconds = DEFAULT_TIMEOUT_S
    max_timeout_s: Seconds = MAX_TIMEOUT_S
    progress_interval_s: ProgressInterval = 5.0
    ping_interval_s: Seconds = 20.0
    ping_timeout_s: Seconds = 20.0
    hello_timeout_s: Seconds = 10.0
    grace_period_s: Seconds = 10.0

    # What is written down.
    log_format: Annotated[Literal["auto", "console", "json"], CaseInsensitive] = "auto"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], CaseInsensitive] = "info"
    audit_content: Annotated[Literal["shape", "full", "none"], CaseInsensitive] = "shape"
    audit_keep_days: Count = 30
    audit_keep_bytes: Count = 1024**3

    @property
    def simulated(self) -> bool:
        """Whether the simulator answers: asked for, or nothing was said and no vendor's key is set."""
        if self.simulate is None:
            return self.kimi_api_key is None and self.glm_api_key is None
        return self.simulate

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        if not self.auth and not is_loopback(self.host):
            raise _of("auth", f"may be off only where host is loopback (127.0.0.1, ::1, localhost), not {self.host}")
        if self.port == self.http_port != 0:
            raise _of("http_port", "must be another port than port")
        if self.default_timeout_s > self.max_timeout_s:
            raise _of("default_timeout_s", f"must be at most max_timeout_s, {self.max_timeout_s:g}")
        if (self.tls_cert is None) != (self.tls_key is None):
            given, missing = ("tls_cert", "tls_key") if self.tls_cert else ("tls_key", "tls_cert")
            raise _of(given, f"needs {missing} as well: set both or none")
        if self.tls_cert and self.tls_key:
            _check_tls(self.tls_cert, self.tls_key)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings passes all by name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # load_settings lays the sources over each other itself, since it has to say which one a wrong value came from.
        return (init_settings,)


def _of(setting: str, message: str) -> PydanticCustomError:
    """An error that two settings make together, told as one of ``setting``."""
    return PydanticCustomError("settings", "{message}", {"setting": setting, "message": message})


def _check_tls(cert: Path, key: Path) -> None:
    for setting, path in (("tls_cert", cert), ("tls_key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise _of(setting, f"must be a readable PEM file; {path}: {error.strerror}") from None
    try:
        tls_context(cert, key)
    except OSError as error:
        reason = (isinstance(error, ssl.SSLError) and error.reason) or "not PEM, or locked by a passphrase"
        raise _of("tls_cert", f"and tls_key must be a PEM certificate and its unlocked key ({reason})") from None


# --- where values come from ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as somebody gave it, and where."""

    value: object
    origin: str


_PATHS: Final = frozenset({"state_dir", "tls_cert", "tls_key", "workspace"})


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


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, _Given]]:
    for name, value in flags.items():
        if value is not None:
            yield name, _Given(value, f"--{'no-' if value is False else ''}{name.replace('_', '-')}")


def _from_file(path: Path) -> Iterator[tuple[str, _Given]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); correct --config or TOOLD_CONFIG") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
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
    """Relative paths mean the folder of the file that says them, or the one where the daemon starts."""
    if name not in _PATHS or not isinstance(given.value, str | Path | list | tuple):
        return given
    if name != "workspace":
        absolute: object = _absolute(given.value, base)
    else:
        pieces = given.value.split(os.pathsep) if isinstance(given.value, str) else given.value
        folders = [pieces] if isinstance(pieces, Path) else pieces
        absolute = [_absolute(folder, base) for folder in folders if folder]
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
    flags = dict(flags)
    named = flags.pop("config", None) or env.get("TOOLD_CONFIG")
    given = {
        "state_dir": _Given(default_state_dir({}), "default"),
        "workspace": _Given([cwd], "the folder where the daemon starts"),
    }
    config = cwd / Path(str(named)).expanduser() if named else cwd / CONFIG_FILE
    if named or config.exists():
        given |= {name: _anchored(name, value, config.parent) for name, value in _from_file(config)}
    for layer in (_Environment(env).given(), _from_flags(flags)):
        given |= {name: _anchored(name, value, cwd) for name, value in layer}
    try:
        return Settings(**{name: value.value for name, value in given.items()})  # type: ignore[arg-type] # being checked
    except ValidationError as error:
        problems = [_sentence(details, given) for details in error.errors(include_url=False)]
    raise SettingsError("; ".join(dict.fromkeys(problems)))


def _sentence(details: ErrorDetails, given: Mapping[str, _Given]) -> str:
    context = details.get("ctx", {})
    name = context.get("setting") or _field_of(str(details["loc"][0]))
    origin = given[name].origin if name in given else "default"
    match details["type"]:
        case "extra_forbidden":
            return f"{name} ({origin}): is not a setting; {_hint(name)}"
        case "bool_parsing" | "bool_type":
            said = "must be true or false"
        case "literal_error":
            options = re.findall(r"'([^']+)'", str(context["expected"]))
            meant = did_you_mean(close_names(str(details["input"]), options, n=1))
            said = f"must be {', '.join(options)}" + (f"; {meant}" if meant else "")
        case _:
            said = re.sub("^Input should (be|have)", r"must \1", details["msg"])
    return f"{name} ({origin}): {said}"


def _field_of(location: str) -> str:
    """The field that pydantic names by one of its aliases."""
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        if location == name or (isinstance(alias, AliasChoices) and location in alias.choices):
            return name
    return location
