"""The stored data of a sign-in, and the parts that a person may read. Pure."""

from typing import Final

import msgspec

from ...protocol.error_codes import PermissionDeniedError
from ...tools import HEADER_VALUE, SecretUnavailableError

DAEMON: Final = ":daemon"
"""The name of the daemon itself in place of a principal. No principal's name begins with a colon."""
MAX_TOKEN_CHARS: Final = 16 * 1024
"""The maximum length of a token. Longer tokens do not fit into the headers that servers accept."""
_ERRORS: Final = frozenset(
    {
        *("access_denied", "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "invalid_target"),
        *("server_error", "temporarily_unavailable", "unauthorized_client", "unsupported_grant_type"),
        *("unsupported_response_type", "invalid_redirect_uri", "invalid_client_metadata", "interaction_required"),
        *("login_required", "consent_required", "unapproved_software_statement", "invalid_software_statement"),
    }
)
"""OAuth's error codes, which messages may repeat. Any other text could be a token."""


class TokenUnavailableError(SecretUnavailableError):
    """There is no token for a request; the message says why and what to do, without a token."""


class OAuthFailedError(Exception):
    """An OAuth server cannot be used; the message says why, and contains no token, code or secret."""


class SignInNeededError(PermissionDeniedError):
    """The caller has to sign in to a source, on the page at ``url``."""

    def __init__(self, source: str, why: str, url: str) -> None:
        self.source, self.url = source, url
        message = f"{source} needs your own sign-in: {why}. Open {url} in your browser, and then call again."
        details = {"sign_in": {"source": source, "url": url}}
        super().__init__(message, executed="no", details=details, summary=f"no sign-in for {source}")


class OAuthClient(msgspec.Struct, frozen=True):
    """The daemon as a client of an authorization server."""

    id: str
    method: str
    """``token_endpoint_auth_method``."""
    secret: str | None = None
    """None if there is no secret, or it is in the settings."""
    expires_at: float | None = None
    """The Unix time at which the secret expires."""

    def __repr__(self) -> str:
        return f"<OAuthClient {self.method}>"


class SignIn(msgspec.Struct, frozen=True):
    """A sign-in to the authorization server of a source: the data to send and renew its token."""

    url: str
    """The URL of the source's server. The token is sent to no other server."""
    issuer: str
    token_endpoint: str
    resource: str | None
    client: OAuthClient
    access_token: str
    refresh_token: str | None
    expires_at: float | None
    lifetime_s: float | None
    """The lifetime of the token when it was issued."""
    scopes: tuple[str, ...]
    """The granted scopes."""

    def __repr__(self) -> str:
        return f"<SignIn at {self.issuer}>"

    @property
    def secrets(self) -> list[str]:
        """The texts that must stay secret."""
        return [text for text in (self.access_token, self.refresh_token, self.client.secret) if text]


class TokenAnswer(msgspec.Struct, frozen=True):
    """The answer of a token endpoint."""

    access_token: str
    token_type: str
    expires_in: float | None = None
    refresh_token: str | None = None
    scope: str | None = None

    def __repr__(self) -> str:
        return "<TokenAnswer>"


def read_token_answer(body: bytes) -> TokenAnswer:
    """Reads the tokens of an answer.

    Raises:
        OAuthFailedError: the answer has no usable token.
    """
    try:
        answer = msgspec.json.decode(body, type=TokenAnswer, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise OAuthFailedError("its answer has no token") from None
    if answer.token_type.lower() != "bearer":
        raise OAuthFailedError("its token is not a bearer token, the only kind that MCP allows")
    for token in (answer.access_token, answer.refresh_token):
        if token is not None and (len(token) > MAX_TOKEN_CHARS or not HEADER_VALUE.fullmatch(token)):
            raise OAuthFailedError(f"its token is longer than {MAX_TOKEN_CHARS} characters, or has unusual ones")
    return answer


def oauth_error(body: bytes, status: int) -> str:
    """The error of an answer, as a code of OAuth or the HTTP status."""
    try:
        code = msgspec.json.decode(body, type=dict[str, object]).get("error")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        code = None
    return error_code(code) or f"HTTP {status}"


def error_code(code: object) -> str | None:
    """The code of an error, if OAuth defines it."""
    return code if isinstance(code, str) and code in _ERRORS else None
