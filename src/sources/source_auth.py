"""Authentication at a source: the setting ``auth``, and the headers and parameters of requests.

The secret is the operator's (``env`` or ``file``), or a credential of the caller (``user`` and ``field``).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.error_codes import CallError, PermissionDeniedError
from ..protocol.user_credential import FIELD_NAME, SERVICE_NAME, CredentialField
from ..tools import HEADER_VALUE, SecretLocation, ToolContext
from .source import secret_rejected
from .source_setting_types import header_name

_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _service(name: str) -> str:
    if not SERVICE_NAME.fullmatch(name):
        raise PydanticCustomError("user_service", "must be the name of a service, such as jira")
    return name


def _field(name: str) -> str:
    if not FIELD_NAME.fullmatch(name):
        raise PydanticCustomError("user_field", "must be the name of a credential's field, such as api_key")
    return name


_Field = Annotated[str, AfterValidator(_field)]


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SecretTable(_Table):
    """The location of a secret: an environment variable of the daemon or a file, never the configuration."""

    env: _Variable | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _one_location(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise PydanticCustomError("secret_location", "must name the location of the secret: either env or file")
        return self

    @property
    def secret(self) -> SecretLocation:
        return SecretLocation(self.env, self.file)


class AuthTable(_Table):
    """The location of the secret of a source."""

    env: _Variable | None = None
    file: Path | None = None
    user: Annotated[str, AfterValidator(_service)] | None = None
    """The service whose credential each caller has given."""
    field: _Field | None = None
    """The field of the credential that has the secret."""

    @model_validator(mode="after")
    def _one_secret(self) -> Self:
        if (self.env, self.file, self.user).count(None) != 2:
            what = "must name the location of the secret: either env or file, or user for a credential of each caller"
            raise PydanticCustomError("secret_location", what)
        if (self.user is None) != (self.field is None):
            raise PydanticCustomError("secret_location", "must have user and field, or neither")
        return self

    @property
    def secret(self) -> SecretLocation | None:
        """The operator's secret; None if it is a credential of the caller."""
        return None if self.user is not None else SecretLocation(self.env, self.file)

    @property
    def credential(self) -> CredentialField | None:
        """The credential of the caller; None if the secret is the operator's."""
        return None if self.user is None or self.field is None else CredentialField(self.user, self.field)

    @property
    def of_caller(self) -> bool:
        """Whether each call is made in the name of its caller."""
        return self.user is not None

    @property
    def credentials(self) -> tuple[CredentialField, ...]:
        """All fields of the caller's credential that a request needs."""
        return () if self.credential is None else (self.credential,)


class BearerAuth(AuthTable):
    """``Authorization: Bearer …``."""

    type: Literal["bearer"]


class ApiKeyAuth(AuthTable):
    """A key in a header or in the query."""

    type: Literal["api_key"]
    name: Annotated[str, AfterValidator(header_name)]
    location: Literal["header", "query"] = Field("header", alias="in")


class BasicAuth(AuthTable):
    """``Authorization: Basic …``; the secret is the password."""

    type: Literal["basic"]
    username: Annotated[str, StringConstraints(pattern=r"^[^:\x00-\x1f]+$")] | None = None
    username_field: _Field | None = None
    """The field of the caller's credential with the user name, such as ``email``."""

    @model_validator(mode="after")
    def _one_username(self) -> Self:
        if self.username_field is not None and self.user is None:
            raise PydanticCustomError("username", "username_field requires user")
        if (self.username is None) == (self.username_field is None):
            raise PydanticCustomError("username", "must have a username, or with user a username_field")
        return self

    @property
    def credentials(self) -> tuple[CredentialField, ...]:
        """All fields of the caller's credential that a request needs."""
        name = self.username_field
        return (
            super().credentials
            if name is None or self.user is None
            else (
                CredentialField(self.user, name),
                *super().credentials,
            )
        )


def with_type(table: Any) -> Any:
    """A credential of the caller is a bearer token, unless the table says otherwise."""
    return {"type": "bearer", **table} if isinstance(table, Mapping) and "user" in table else table


Auth = Annotated[BearerAuth | ApiKeyAuth | BasicAuth, Field(discriminator="type"), BeforeValidator(with_type)]


@dataclass(frozen=True, slots=True)
class AuthValues:
    """The headers and parameters that authenticate a request. Its ``repr`` shows no secret."""

    secret: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: list[tuple[str, str]] = field(default_factory=list, repr=False)

    @property
    def redacted_values(self) -> list[str]:
        """Values to remove from responses: the secret, and its header value (Base64 for ``basic``)."""
        return [*filter(None, [self.secret]), *(value.rpartition(" ")[2] for value in self.headers.values())]


NO_AUTH: Final = AuthValues()


def auth_values(auth: Auth, secret: str, username: str | None = None) -> AuthValues:
    """The authentication of a request with this secret; ``username`` comes from the caller's credential."""
    if isinstance(auth, ApiKeyAuth):
        if auth.location == "query":
            return AuthValues(secret, query=[(auth.name, secret)])
        return AuthValues(secret, {auth.name: secret})
    if isinstance(auth, BasicAuth):
        pair = base64.b64encode(f"{username or auth.username}:{secret}".encode()).decode()
        return AuthValues(secret, {"Authorization": f"Basic {pair}"})
    return AuthValues(secret, {"Authorization": f"Bearer {secret}"})


def operator_auth(auth: Auth | None) -> AuthValues:
    """The authentication of a request with the current secret of the operator.

    Raises:
        SecretUnavailableError: the secret cannot be read.
    """
    if auth is None or auth.secret is None:
        return NO_AUTH
    return auth_values(auth, auth.secret.read_header_value())


async def caller_auth(auth: Auth, context: ToolContext) -> AuthValues:
    """The authentication of a call's requests with the current credential of its principal.

    Raises:
        MissingCredentialError: the principal has not given the credential.
        PermissionDeniedError: the credential cannot be sent.
        ServiceUnavailableError: the vault cannot be read.
    """
    *names, secret = [await _header_value(wanted, context) for wanted in auth.credentials]
    if names and ":" in names[0]:
        raise _unsendable(auth.credentials[0], "must not contain a colon")
    return auth_values(auth, secret, names[0] if names else None)


async def _header_value(wanted: CredentialField, context: ToolContext) -> str:
    value = (await context.user_credential(wanted)).strip()
    if not HEADER_VALUE.fullmatch(value):
        raise _unsendable(wanted, "must be one line of printable ASCII characters")
    return value


def _unsendable(wanted: CredentialField, problem: str) -> PermissionDeniedError:
    return PermissionDeniedError.content_free(
        f"Your credential for {wanted} {problem}. Replace it: `toold credentials set {wanted.service} {wanted.field}`.",
        executed="no",
    )


def worded_for_user(error: CallError, source: str, auth: Auth | None) -> CallError:
    """The error of a call. If the source rejects the caller's own credential, the advice is for the caller."""
    wanted = None if auth is None else auth.credential
    if wanted is not None:
        command = f"`toold credentials set {wanted.service} {wanted.field}`"
        own = f"It rejects your credential for {wanted.service}; replace it with {command}."
        error.message = error.message.replace(secret_rejected(source), own)
        error.summary = error.summary and error.summary.replace(secret_rejected(source), own)
    return error
