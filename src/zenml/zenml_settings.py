"""The settings of the ZenML server, ``[zenml]`` in toold.toml; documented in docs/zenml.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.daemon_address import is_loopback
from ..sources import Hosts, HttpUrl, SecretTable, read_keyed_table
from ..tools import anchored_secret

URL_VARIABLE: Final = "ZENML_STORE_URL"
KEY_VARIABLE: Final = "ZENML_STORE_API_KEY"


class ZenmlSettings(BaseModel):
    """A ZenML server."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: HttpUrl
    """As in ``ZENML_STORE_URL``, whose value is the default."""
    key: SecretTable = Field(default_factory=lambda: SecretTable(env=KEY_VARIABLE))
    """The API key of a service account."""
    project: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """The name or id of the project; None: the server's default."""
    poll_s: Annotated[float, Field(ge=0.05, le=3600, allow_inf_nan=False)] = 10.0
    """The interval between two requests for the status of a run."""
    timeout_s: Annotated[float, Field(gt=0, le=300, allow_inf_nan=False)] = 60.0
    """The limit for one request."""
    allow_private: Hosts = False
    """Whether its address may be loopback or private, or a list of hosts whose address may."""
    allow_http: bool = False
    """Whether the URL may be http to a host that is not loopback."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme.lower() == "http" and not is_loopback(parts.hostname or "") and not self.allow_http:
            message = (
                "url uses http to another host, so requests can be changed in transit; use https, or set allow_http"
            )
            raise PydanticCustomError("zenml", message)
        return self

    @property
    def base(self) -> str:
        """The URL below which the paths of the API are."""
        return self.url.partition("?")[0].partition("#")[0].rstrip("/")

    @property
    def key_files(self) -> tuple[Path, ...]:
        """The file with the key, which no call may read."""
        return () if self.key.file is None else (self.key.file,)

    def __str__(self) -> str:
        return self.base


class ZenmlSettingsError(ValueError):
    """Invalid settings; the message names the key and what is allowed, never the value."""


def read_zenml(table: object) -> ZenmlSettings | None:
    """Returns the settings; None if there are none.

    Raises:
        ZenmlSettingsError: they are invalid.
    """
    if table is None:
        return None
    expected = "[zenml] with url"
    return read_keyed_table(
        table, ZenmlSettings, ZenmlSettingsError, expected=expected, fields=lambda _: list(ZenmlSettings.model_fields)
    )


def anchored_zenml(table: object, base: Path, env: Mapping[str, str]) -> object:
    """Returns the table with the key's file resolved in ``base``, and with the URL of the environment if it has none.
    Other values are left for validation."""
    if not isinstance(table, Mapping):
        return table
    anchored: dict[str, Any] = dict(table)
    if "url" not in anchored and env.get(URL_VARIABLE):
        anchored["url"] = env[URL_VARIABLE]
    if "key" in anchored:
        anchored["key"] = anchored_secret(anchored["key"], base)
    return anchored
