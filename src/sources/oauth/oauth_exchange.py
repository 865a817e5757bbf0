"""The requests of a sign-in: registers the daemon as a client, makes the link for the browser, and requests tokens."""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import msgspec

from ...version import __version__
from .oauth_http import OAuthHttp
from .oauth_settings import OAuthAuth
from .sign_in_values import (
    MAX_TOKEN_CHARS,
    OAuthClient,
    OAuthFailedError,
    TokenAnswer,
    oauth_error,
    read_token_answer,
)

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .oauth_discovery import AuthorizationServer

_VERIFIER_BYTES: Final = 48
_KNOWN_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
MAX_LIFETIME_S: Final = 366 * 24 * 3600.0
"""The maximum lifetime of a token; longer lifetimes are reduced to it."""


class RefusedGrantError(OAuthFailedError):
    """The token endpoint refused a request; ``code`` is its error."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the authorization server refuses ({code})")
        self.code = code


def new_verifier() -> str:
    """A secret for one sign-in (RFC 7636)."""
    return secrets.token_urlsafe(_VERIFIER_BYTES)


def authorization_url(
    server: "AuthorizationServer",
    client: OAuthClient,
    *,
    redirect_uri: str,
    state: str,
    verifier: str,
    scopes: Sequence[str],
) -> str:
    """The link with which a person signs in."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    if scopes:
        query["scope"] = " ".join(scopes)
        if "offline_access" in scopes:
            query["prompt"] = "consent"  # without it, offline_access is ignored (OpenID Connect, 11)
    if server.resource is not None:
        query["resource"] = server.resource
    parts = urlsplit(server.authorization_endpoint)
    joined = "&".join(filter(None, (parts.query, urlencode(query))))
    return urlunsplit(parts._replace(query=joined, fragment=""))


def issuer_path(server: "AuthorizationServer", auth: OAuthAuth) -> str:
    """The last part of the redirect address of a client that the daemon registers; empty for other clients.

    It differs for each issuer, so that an authorization server cannot pass off another server's code as its own (RFC
    9700, 4.4). The other clients were registered by the operator, with one address.
    """
    registered = auth.client_id is not None or (auth.client_metadata_url is not None and server.client_documents)
    return "" if registered else hashlib.sha256(server.issuer.encode()).hexdigest()[:16]


async def find_client(
    http: OAuthHttp, server: "AuthorizationServer", auth: OAuthAuth, redirect_uri: str, scopes: Sequence[str]
) -> OAuthClient:
    """Returns the daemon's client: the configured one, a client id metadata document, or a newly registered one.

    Raises:
        OAuthFailedError: the daemon cannot become a client.
    """
    if auth.client_id is not None:
        return OAuthClient(auth.client_id, _method(server) if auth.client_secret is not None else "none")
    if auth.client_metadata_url is not None and server.client_documents:
        return OAuthClient(auth.client_metadata_url, "none")
    if server.registration_endpoint is None:
        how = "client_metadata_url or client_id" if server.client_documents else "client_id"
        raise OAuthFailedError(f"the authorization server does not register clients automatically; set {how} in auth")
    asked: dict[str, Any] = {
        "client_name": "toold",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none" if "none" in server.auth_methods else _method(server),
        "application_type": "native" if urlsplit(redirect_uri).scheme == "http" else "web",
        "software_id": "toold",
        "software_version": __version__,
    }
    if scopes:
        asked["scope"] = " ".join(scopes)
    answer = await http.post(server.registration_endpoint, content=asked)
    if answer.status not in {200, 201}:
        why = oauth_error(answer.body, answer.status)
        raise OAuthFailedError(f"the authorization server does not register the daemon as a client ({why})")
    return _registered(answer.body, asked["token_endpoint_auth_method"])


def _registered(body: bytes, asked_method: str) -> OAuthClient:
    try:
        answer = msgspec.json.decode(body, type=_Registration, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise OAuthFailedError("the authorization server's registration is not usable") from None
    method = answer.token_endpoint_auth_method or asked_method
    texts = [answer.client_id, answer.client_secret or ""]
    if not answer.client_id or any(len(text) > MAX_TOKEN_CHARS for text in texts) or method not in _KNOWN_METHODS:
        raise OAuthFailedError("the authorization server's registration is not usable")
    if method != "none" and not answer.client_secret:
        raise OAuthFailedError("the authorization server registered the daemon with a secret, which it did not send")
    return OAuthClient(answer.client_id, method, answer.client_secret, answer.client_secret_expires_at or None)


class _Registration(msgspec.Struct):
    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: str | None = None


def _method(server: "AuthorizationServer") -> str:
    """The method of sending the client's secret."""
    return next((method for method in _KNOWN_METHODS[1:] if method in server.auth_methods), "client_secret_post")


async def ask_for_token(
    http: OAuthHttp, endpoint: str, client: OAuthClient, secret: str | None, form: Mapping[str, str | None]
) -> TokenAnswer:
    """Requests a token; ``secret`` is the client's.

    Raises:
        RefusedGrantError: the server refuses.
        OAuthFailedError: the server does not answer, or its answer has no token.
    """
    sent = {name: value for name, value in form.items() if value is not None} | {"client_id": client.id}
    headers = {}
    if client.method == "client_secret_basic" and secret is not None:
        pair = f"{quote(client.id, safe='')}:{quote(secret, safe='')}"  # RFC 6749, 2.3.1
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif client.method == "client_secret_post" and secret is not None:
        sent["client_secret"] = secret
    answer = await http.post(endpoint, form=sent, headers=headers)
    if answer.status in {400, 401, 403}:
        raise RefusedGrantError(oauth_error(answer.body, answer.status))
    if answer.status != 200:
        raise OAuthFailedError(f"the authorization server answered HTTP {answer.status} when asked for a token")
    return read_token_answer(answer.body)


def lifetime_s(answer: TokenAnswer) -> float | None:
    """The number of seconds for which a new token is valid; None if the answer does not say."""
    return None if answer.expires_in is None else min(max(answer.expires_in, 0.0), MAX_LIFETIME_S)
