"""Finds the authorization server of an MCP server (RFC 9728, RFC 8414, OpenID Connect Discovery).

Importing this module takes a second, because of the MCP SDK, whose functions build the addresses and read the
documents. The SDK's own flow is not used, because it waits for the person within a request and does not check
addresses.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from ...protocol.terminal_text import one_line
from .oauth_http import OAuthHttp
from .oauth_settings import MAX_SCOPES, OAuthAuth, is_confidential_url
from .sign_in_values import OAuthFailedError

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The properties of an authorization server that a sign-in needs."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None
    resource: str | None
    """The resource indicator (RFC 8707); None if the source's server names none."""
    scopes: tuple[str, ...]
    """The scopes that the source's server lists. They apply unless one of its answers demands others."""
    offline_access: bool
    """Whether a refresh token needs a separate scope."""
    client_documents: bool
    """Whether the server accepts client id metadata documents."""
    auth_methods: tuple[str, ...]
    sends_iss: bool
    """Whether each response of the server names the issuer (RFC 9207)."""


async def discover(http: OAuthHttp, server_url: str, document_url: str | None, auth: OAuthAuth) -> AuthorizationServer:
    """Finds the authorization server of the MCP server at ``server_url``.

    ``document_url`` is the ``resource_metadata`` of its 401 response.

    Raises:
        OAuthFailedError: there is no usable authorization server.
    """
    document = await _resource_document(http, server_url, document_url)
    if auth.issuer is not None:
        issuer = auth.issuer
    elif document is not None:
        issuer = str(document.authorization_servers[0])
    else:  # revision 2025-03-26: the server is its own authorization server
        issuer = _origin(server_url)
    metadata = await _metadata(http, issuer, server_url)
    if metadata is None:
        if document is not None or auth.issuer is not None:
            raise OAuthFailedError(f"the authorization server {one_line(issuer, 200)} has no metadata")
        metadata = _default_metadata(issuer)
    elif "S256" not in (metadata.code_challenge_methods_supported or ()) and auth.grant == "authorization_code":
        raise OAuthFailedError(f"the authorization server {one_line(issuer, 200)} does not offer PKCE with S256")
    endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.registration_endpoint)
    for endpoint in filter(None, endpoints):
        if not is_confidential_url(str(endpoint)):
            raise OAuthFailedError("the authorization server has an address without encryption (http://)")
        if "@" in urlsplit(str(endpoint)).netloc:  # the link would appear to lead to another server
            raise OAuthFailedError("the authorization server has an address with a user name")
    return AuthorizationServer(
        issuer=str(metadata.issuer),
        authorization_endpoint=str(metadata.authorization_endpoint),
        token_endpoint=str(metadata.token_endpoint),
        registration_endpoint=None if metadata.registration_endpoint is None else str(metadata.registration_endpoint),
        resource=resource_url_from_server_url(server_url) if document is None else str(document.resource),
        scopes=known_scopes(() if document is None else document.scopes_supported or ()),
        offline_access="offline_access" in (metadata.scopes_supported or ()),
        client_documents=metadata.client_id_metadata_document_supported is True,
        auth_methods=tuple(metadata.token_endpoint_auth_methods_supported or ("client_secret_basic",)),
        sends_iss=metadata.authorization_response_iss_parameter_supported is True,
    )


def known_scopes(scopes: "list[str] | tuple[str, ...]") -> tuple[str, ...]:
    """The well-formed scopes without duplicates, at most ``MAX_SCOPES``."""
    return tuple(dict.fromkeys(scope for scope in scopes if _SCOPE.fullmatch(scope)))[:MAX_SCOPES]


async def _resource_document(
    http: OAuthHttp, server_url: str, document_url: str | None
) -> ProtectedResourceMetadata | None:
    if document_url is not None and _origin(document_url) != _origin(server_url):
        raise OAuthFailedError(
            f"its resource_metadata is at another server ({one_line(urlsplit(document_url).hostname or '', 100)})"
        )
    for url in build_protected_resource_metadata_discovery_urls(document_url, server_url):
        answer = await http.get(url)
        if answer.status >= 500 or answer.status == 429:
            raise OAuthFailedError(f"its resource metadata cannot be read (HTTP {answer.status})")
        if answer.status != 200:
            continue
        try:
            document = ProtectedResourceMetadata.model_validate_json(answer.body)
        except ValidationError:
            continue
        if not check_resource_allowed(resource_url_from_server_url(server_url), str(document.resource)):
            raise OAuthFailedError(f"its metadata is about another resource ({one_line(str(document.resource), 200)})")
        return document
    return None


async def _metadata(http: OAuthHttp, issuer: str, server_url: str) -> OAuthMetadata | None:
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server_url):
        answer = await http.get(url)
        if answer.status >= 500 or answer.status == 429:
            raise OAuthFailedError(f"the metadata of the authorization server cannot be read (HTTP {answer.status})")
        if answer.status != 200:
            continue
        try:
            metadata = OAuthMetadata.model_validate_json(answer.body)
        except ValidationError:
            continue
        if not issuers_match(str(metadata.issuer), issuer):
            raise OAuthFailedError(
                f"the metadata of {one_line(issuer, 200)} names another issuer ({one_line(str(metadata.issuer), 200)})"
            )
        return metadata
    return None


def _default_metadata(origin: str) -> OAuthMetadata:
    """The fixed paths of revision 2025-03-26, which apply without metadata."""
    return OAuthMetadata.model_validate(
        {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
        }
    )


def _origin(url: str) -> str:
    """
    Raises:
        OAuthFailedError: the address is not a URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise OAuthFailedError("its resource_metadata is not a URL") from None
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"
