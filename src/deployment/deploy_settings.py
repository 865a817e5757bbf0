"""The settings of deployments, ``[deploy]`` in toold.toml; documented in docs/deploy.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.home_directory import expand_home
from ..sources import GoogleAccount, Hosts, HttpUrl, SecretTable, read_keyed_table

TargetName = Literal["here", "cloud-run"]

_CONFIG: Final = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)
_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class LiteLlmSettings(BaseModel):
    """The LiteLLM proxy that gives each deployed container a separate key."""

    model_config = _CONFIG

    url: HttpUrl
    key: SecretTable
    """The proxy's master key."""


class CloudRunSettings(BaseModel):
    """Where services are created, and with which account."""

    model_config = _CONFIG

    project: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,63}$")]
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,40}$")]
    image: _Text | None = None
    """The image for requests that do not name one."""
    account: _Text | None = None
    """The service account of the containers; None: the project's default."""
    env: Mapping[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], _Text] = {}
    """The variables of each container."""
    token: SecretTable | None = None
    """An access token that another program renews. It is read before each request."""
    service_account: Path | None = None
    """The JSON key of a service account, for access tokens. Without it and ``token``, tokens come from the metadata
    server.
    """
    litellm: LiteLlmSettings | None = None
    """The proxy that issues keys; None: containers get no key."""
    run_url: HttpUrl = "https://run.googleapis.com"
    secrets_url: HttpUrl = "https://secretmanager.googleapis.com"
    metadata_url: HttpUrl = "http://metadata.google.internal"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.token is not None and self.service_account is not None:
            raise PydanticCustomError("deploy", "has token and service_account; write one of them")
        if reserved := sorted({"PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"} & self.env.keys()):
            raise PydanticCustomError("deploy", "env has {name}, which Cloud Run sets", {"name": reserved[0]})
        return self


class DeploySettings(BaseModel):
    """Deployments are off without these settings."""

    model_config = _CONFIG

    target: TargetName = "here"
    """The target of requests that do not name one."""
    registries: Annotated[tuple[HttpUrl, ...], Field(max_length=100)] = ()
    """Registries that requests may name in addition to that of ``[registry]``."""
    timeout_s: Annotated[float, Field(ge=60, le=7200)] = 1800.0
    """The timeout of the phases of one job. Undoing them has a separate time."""
    request_timeout_s: Annotated[float, Field(gt=0, le=300)] = 30.0
    """The timeout of one request to another system."""
    poll_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """The interval between two polls of an operation of Cloud Run, and before a failed phase is tried again."""
    allow_private: Hosts = False
    """Whether the other systems may have loopback or private addresses, or the hosts that may."""
    cloud_run: CloudRunSettings | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.target == "cloud-run" and self.cloud_run is None:
            raise PydanticCustomError("deploy", "has target cloud-run, which needs [deploy.cloud_run]")
        return self

    @property
    def key_files(self) -> tuple[Path, ...]:
        """The files with secrets. Calls must not read them."""
        cloud = self.cloud_run
        if cloud is None:
            return ()
        tables = (cloud.token, None if cloud.litellm is None else cloud.litellm.key)
        files = (cloud.service_account, *(table.file for table in tables if table is not None))
        return tuple(file for file in files if file is not None)


def google_account(settings: DeploySettings, cloud: CloudRunSettings) -> GoogleAccount:
    """The source of the access tokens of deployments."""
    return GoogleAccount(
        "[deploy.cloud_run]",
        cloud.token,
        cloud.service_account,
        cloud.metadata_url,
        settings.request_timeout_s,
        settings.allow_private,
    )


class DeploySettingsError(ValueError):
    """Invalid settings; the message names the key and the allowed values, never the value."""


def read_deploy(table: object) -> DeploySettings | None:
    """Return the settings; None if there are none.

    Raises:
        DeploySettingsError: the settings are invalid.
    """
    if table is None:
        return None
    expected = "[deploy], which may be empty"
    return read_keyed_table(table, DeploySettings, DeploySettingsError, expected=expected, fields=_fields)


def _fields(path: Sequence[str]) -> list[str]:
    match list(path):
        case ["cloud_run"]:
            return list(CloudRunSettings.model_fields)
        case ["cloud_run", "litellm"]:
            return list(LiteLlmSettings.model_fields)
    return list(DeploySettings.model_fields)


def anchored_deploy(table: object, base: Path) -> object:
    """Return the table with its files resolved in ``base``. Other values are left to validation."""
    return _anchored(table, base) if isinstance(table, Mapping) else table


def _anchored(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    anchored: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            anchored[name] = _anchored(value, base)
        else:
            is_file = name in {"file", "service_account"} and isinstance(value, str)
            anchored[name] = base / expand_home(value) if is_file else value
    return anchored
