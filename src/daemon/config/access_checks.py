"""Checks of the settings that decide who may connect: OAuth and the certificate."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ...protocol.daemon_address import is_loopback
from .model_checks import setting_error
from .setting_types import tls_context


class OAuthValues(NamedTuple):
    """The settings of OAuth, without the prefix ``oauth_``."""

    issuer: str | None
    resource: str | None
    audience: str | None
    scopes: Mapping[str, object]
    operator_scope: str | None


def check_oauth(oauth: OAuthValues, *, auth: bool) -> None:
    """Checks the settings of OAuth together.

    Raises:
        PydanticCustomError: a URL is unsuitable, one setting lacks another, or ``auth`` is off.
    """
    for setting, url in {"oauth_issuer": oauth.issuer, "oauth_resource": oauth.resource}.items():
        if url is None:
            continue
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise setting_error(setting, "must not contain ? or #")
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise setting_error(setting, "must start with https://; http:// is allowed for loopback only")
    if oauth.issuer is None:
        needless = {
            "oauth_resource": oauth.resource,
            "oauth_audience": oauth.audience,
            "oauth_scopes": oauth.scopes or None,
            "oauth_operator_scope": oauth.operator_scope,
        }
        for setting, value in needless.items():
            if value is not None:
                raise setting_error(setting, "also needs oauth_issuer")
    elif oauth.resource is None:
        raise setting_error("oauth_issuer", "also needs oauth_resource: the address of /mcp as clients know it")
    elif not auth:
        raise setting_error("oauth_issuer", "has no effect if auth is off")


def check_tls(cert: Path, key: Path) -> None:
    """Checks that the certificate and its key can be used. Reads both files.

    Raises:
        PydanticCustomError: they cannot be used.
    """
    for setting, path in (("tls_cert", cert), ("tls_key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise setting_error(setting, f"must be a readable PEM file; {path}: {error.strerror}") from None
    try:
        tls_context(cert, key)
    except OSError as error:
        reason = (isinstance(error, ssl.SSLError) and error.reason) or "not PEM, or encrypted with a passphrase"
        raise setting_error(
            "tls_cert", f"and tls_key must be a PEM certificate and its unencrypted key ({reason})"
        ) from None
