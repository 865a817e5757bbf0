"""The settings of users' credentials, ``[user_credentials]`` in toold.toml; documented in docs/credentials.md."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from ..protocol.home_directory import expand_home
from ..sources import GoogleAccount, Hosts, HttpUrl, SecretTable, read_keyed_table
from ..tools import anchored_secret

PLACE: Final = "[user_credentials.secret_manager]"
_TEMPLATE: Final = re.compile(
    r"[A-Za-z0-9_-]*(?:\{user\}[A-Za-z0-9_-]*--[A-Za-z0-9_-]*\{service\}|"
    r"\{service\}[A-Za-z0-9_-]*--[A-Za-z0-9_-]*\{user\})[A-Za-z0-9_-]*"
)
"""``--`` separates user and service and occurs in neither, so the names are unique."""


def _template(template: str) -> str:
    if not _TEMPLATE.fullmatch(template):
        what = "must have the user and the service once each in braces, -- between them, and else only A-Za-z0-9_-"
        raise PydanticCustomError("template", what)
    return template


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SecretManagerSettings(_Table):
    """Credentials in Google Secret Manager."""

    project: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,63}$")]
    name: Annotated[str, StringConstraints(max_length=60), AfterValidator(_template)] = (
        "user-credentials--{user}--{service}"
    )
    """The ids of the secrets."""
    token: SecretTable | None = None
    """The file of an access token, which another program renews; read before each request."""
    service_account: Path | None = None
    """The JSON key of a service account, to get access tokens. Without it and ``token``, the metadata server gives
    them."""
    url: HttpUrl = "https://secretmanager.googleapis.com"
    metadata_url: HttpUrl = "http://metadata.google.internal"
    timeout_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 10.0
    """The limit for one look-up or change."""
    allow_private: Hosts = False
    """Whether the address may be loopback or private, or a list of hosts whose address may."""

    @property
    def account(self) -> GoogleAccount:
        """The origin of the access tokens."""
        return GoogleAccount(
            PLACE, self.token, self.service_account, self.metadata_url, self.timeout_s, self.allow_private
        )


class VaultSettings(_Table):
    """Where credentials of users are stored, and where users enter them."""

    page: HttpUrl | None = None
    """The page on which users enter credentials; messages about missing credentials contain it."""
    secret_manager: SecretManagerSettings | None = None
    """If None, the credentials are in the daemon's database."""

    @property
    def key_files(self) -> tuple[Path, ...]:
        """Files with secrets, which no call may read."""
        manager = self.secret_manager
        if manager is None:
            return ()
        files = (manager.service_account, None if manager.token is None else manager.token.file)
        return tuple(file for file in files if file is not None)


class VaultSettingsError(ValueError):
    """Invalid settings of the vault; the message names the key and what is allowed, never the value."""


def read_vault(table: object) -> VaultSettings:
    """Returns the settings of the vault.

    Raises:
        VaultSettingsError: they are invalid.
    """
    expected = "[user_credentials] with page or secret_manager"
    return read_keyed_table(table, VaultSettings, VaultSettingsError, expected=expected, fields=_fields)


def _fields(path: object) -> list[str]:
    return list((SecretManagerSettings if path else VaultSettings).model_fields)


def anchored_vault(table: object, base: Path) -> object:
    """Returns the table with its files resolved in ``base``; other values are left for validation."""
    if not isinstance(table, Mapping) or not isinstance(manager := table.get("secret_manager"), Mapping):
        return table
    changed: dict[str, Any] = dict(manager)
    if "token" in manager:
        changed["token"] = anchored_secret(manager["token"], base)
    if isinstance(file := manager.get("service_account"), str):
        changed["service_account"] = base / expand_home(file)
    return {**table, "secret_manager": changed}
