"""The setting ``auth`` of an MCP server with OAuth; documented in docs/sources-oauth.md."""

from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ...protocol.daemon_address import is_loopback
from ...protocol.user_credential import CredentialField
from ...tools import SecretLocation
from ..source_auth import ApiKeyAuth, Auth, BasicAuth, BearerAuth, SecretTable, with_type
from ..source_setting_types import HttpUrl

MAX_SCOPES: Final = 100
"""The maximum number of scopes of one sign-in, configured or demanded by the server."""

_Scope = Annotated[str, StringConstraints(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,200}$")]
"""A scope, as RFC 6749, 3.3 defines it."""
_Text = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{1,2000}$")]


def is_confidential_url(url: str) -> bool:
    """Whether data sent to the URL is confidential: it goes over ``https://`` or stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _confidential(url: str) -> str:
    if not is_confidential_url(url):
        raise PydanticCustomError("oauth_url", "must begin with https://, except on loopback addresses")
    return url


def _document(url: str) -> str:
    if not (url.startswith("https://") and urlsplit(url).path.strip("/")):
        raise PydanticCustomError(
            "oauth_url", "must begin with https:// and have a path (a client id metadata document)"
        )
    return url


class OAuthAuth(BaseModel):
    """Tokens of an authorization server: ``issuer``, or the server that the source's server names."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    type: Literal["oauth"]
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """Whether a person signs in, or the client has access without a person."""
    per: Literal["daemon", "user"] = "daemon"
    """The party that signs in: the operator for all callers, or each caller."""
    issuer: Annotated[HttpUrl, AfterValidator(_confidential)] | None = None
    """The authorization server; None: the first one that the source's server names."""
    client_id: _Text | None = None
    """The client's id; None: ``client_metadata_url``, or a client that the daemon registers."""
    client_secret: SecretTable | None = None
    client_metadata_url: Annotated[HttpUrl, AfterValidator(_document)] | None = None
    """The URL of a client id metadata document, which is the client's id at servers that support it."""
    scopes: Annotated[tuple[_Scope, ...], Field(max_length=MAX_SCOPES)] = ()
    """The scopes to request; if empty, those that the source's server demands."""

    @property
    def of_caller(self) -> bool:
        """Whether each call is made in the name of its caller."""
        return self.per == "user"

    @property
    def credential(self) -> CredentialField | None:
        """None, because a sign-in is not a credential that the caller gives."""
        return None

    @property
    def credentials(self) -> tuple[CredentialField, ...]:
        """Empty, for the same reason."""
        return ()

    @property
    def secret_locations(self) -> tuple[SecretLocation, ...]:
        """The locations of the secrets."""
        return () if self.client_secret is None else (self.client_secret.secret,)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.grant == "client_credentials":
            if self.per == "user":
                raise PydanticCustomError("oauth", 'per = "user" requires the grant authorization_code')
            if self.client_id is None or self.client_secret is None:
                raise PydanticCustomError("oauth", "client_credentials requires client_id, client_secret and issuer")
        if self.client_secret is not None and (self.client_id is None or self.issuer is None):
            # Otherwise the source's server could name its own authorization server, which would get the secret.
            raise PydanticCustomError("oauth", "client_secret requires client_id, and issuer: the server that gets it")
        if self.client_id is not None and self.client_metadata_url is not None:
            raise PydanticCustomError("oauth", "must have client_id or client_metadata_url, not both")
        return self


McpAuth = Annotated[
    BearerAuth | ApiKeyAuth | BasicAuth | OAuthAuth, Field(discriminator="type"), BeforeValidator(with_type)
]
"""How the daemon authenticates to an MCP server."""


def secret_auth(auth: McpAuth | None) -> Auth | None:
    """The settings, if a secret or credential is sent; None for OAuth."""
    return None if isinstance(auth, OAuthAuth) else auth


def auth_secrets(auth: McpAuth | None) -> tuple[SecretLocation, ...]:
    """The locations of the operator's secrets."""
    if isinstance(auth, OAuthAuth):
        return auth.secret_locations
    return () if auth is None or auth.secret is None else (auth.secret,)
