"""The settings of prompts, ``[prompts]`` in toold.toml; documented in docs/prompts.md."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from ..protocol.home_directory import expand_home
from ..sources import Hosts, HttpUrl, SecretTable, read_keyed_table
from ..tools import anchored_secret

PromptSourceName = Literal["inline", "phoenix", "litellm", "registry", "file"]
ServerName = Literal["phoenix", "litellm", "registry"]

DEFAULT_ORDER: Final[tuple[PromptSourceName, ...]] = get_args(PromptSourceName)
DEFAULT_TAG: Final = "production"
FOLDER: Final = "prompts"
"""The name of the default folder of prompts, next to the settings file."""
_SERVERS: Final[tuple[ServerName, ...]] = get_args(ServerName)


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class PromptServerSettings(_Table):
    """A server that has prompts."""

    url: HttpUrl
    key: SecretTable | None = None
    """The key, sent as ``Authorization: Bearer``; None if the server needs no key."""
    timeout_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 5.0
    """The timeout for one prompt, including connecting, all requests and reading the answers."""
    allow_private: Hosts = False
    """Whether the address may be loopback or private, or the hosts for which it may."""


class PhoenixSettings(PromptServerSettings):
    """A Phoenix server."""

    tag: Annotated[str, StringConstraints(min_length=1, max_length=200)] = DEFAULT_TAG
    """The tag of the versions to use. Without this tag, the latest version of a prompt is used."""


def _order(names: tuple[PromptSourceName, ...]) -> tuple[PromptSourceName, ...]:
    if len(set(names)) < len(names):
        raise PydanticCustomError("order", "must name each source once")
    return names


class PromptSettings(_Table):
    """The sources of prompts, and their order."""

    order: Annotated[tuple[PromptSourceName, ...], Field(min_length=1), AfterValidator(_order)] = DEFAULT_ORDER
    """The sources that are searched; a source that is not configured is skipped."""
    phoenix: PhoenixSettings | None = None
    litellm: PromptServerSettings | None = None
    registry: PromptServerSettings | None = None
    folder: Path = Field(default_factory=lambda: Path.cwd() / FOLDER)
    """The folder with one file per prompt or role."""
    default_file: Path | None = None
    """The prompt of roles for which no source has one; by default ``default.txt`` or ``default.md`` in the folder."""

    @property
    def servers(self) -> Iterator[tuple[ServerName, PromptServerSettings]]:
        """The configured servers."""
        for name in _SERVERS:
            settings: PromptServerSettings | None = getattr(self, name)
            if settings is not None:
                yield name, settings

    def __str__(self) -> str:
        """The sources that are searched, in order."""
        return ", ".join(name for name in self.order if name not in _SERVERS or getattr(self, name) is not None)

    @property
    def key_files(self) -> Iterator[Path]:
        """The files with keys. Calls must not read them."""
        for _, server in self.servers:
            if server.key is not None and server.key.file is not None:
                yield server.key.file


class PromptSettingsError(ValueError):
    """Invalid settings of prompts; the message names the key and the allowed values, never the value."""


def read_prompts(table: object) -> PromptSettings:
    """Return the settings of prompts.

    Raises:
        PromptSettingsError: the settings are invalid.
    """
    expected = "[prompts] with its settings"
    return read_keyed_table(table, PromptSettings, PromptSettingsError, expected=expected, fields=_fields)


def _fields(steps: Sequence[str]) -> list[str]:
    table: type[BaseModel] = PromptSettings
    if steps:
        table = PhoenixSettings if steps[0] == "phoenix" else PromptServerSettings
    return list(table.model_fields)


def anchored_prompts(table: object, base: Path) -> object:
    """Return the table with its relative paths resolved in ``base``. Other values are left to validation."""
    if not isinstance(table, Mapping):
        return table
    anchored: dict[str, Any] = {"folder": FOLDER, **table}
    for name in ("folder", "default_file"):
        if isinstance(path := anchored.get(name), str | Path):
            anchored[name] = base / expand_home(path)
    for name in _SERVERS:
        if isinstance(server := anchored.get(name), Mapping):
            anchored[name] = _with_anchored_key(server, base)
    return anchored


def _with_anchored_key(server: Mapping[str, Any], base: Path) -> dict[str, Any]:
    return {**server, "key": anchored_secret(server["key"], base)} if "key" in server else dict(server)
