"""Access tokens for Google's APIs, from a file or variable, a service account, or the metadata server."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ..protocol.error_codes import ServiceUnavailableError, ToolExecutionError
from ..tools import SecretUnavailableError
from .json_server import JsonServer, UnusableAnswerError
from .source_auth import SecretTable

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
MARGIN_S: Final = 120.0
"""A token is replaced this many seconds before it expires."""
ASSERTION_S: Final = 3600
"""The maximum lifetime that Google accepts for the assertion of a service account."""
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_METADATA_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"


class GoogleAccount(NamedTuple):
    """Where tokens come from, and how they are requested."""

    place: str
    """The settings table that configures the tokens, such as ``[deploy.cloud_run]``."""
    token: SecretTable | None
    """An access token, which another program renews."""
    service_account: Path | None
    """The JSON key of a service account. Without it and ``token``, the token comes from the metadata server."""
    metadata_url: str
    timeout_s: float
    allow_private: bool | tuple[str, ...]


class GoogleToken:
    """The token of one daemon; kept in memory until shortly before it expires."""

    def __init__(self, account: GoogleAccount) -> None:
        self._account = account
        self._token = ""
        self._until = 0.0
        self._asking = asyncio.Lock()

    def __repr__(self) -> str:
        return "<GoogleToken>"

    async def read(self) -> str:
        """The token.

        Raises:
            ServiceUnavailableError: the token's server cannot be asked.
            ToolExecutionError: the configured token or key cannot be used.
        """
        if self._account.token is not None:
            try:
                return await asyncio.to_thread(self._account.token.secret.read_header_value)
            except SecretUnavailableError as error:
                why = f"The token of {self._account.place} cannot be read: {error}."
                raise ToolExecutionError(why, executed="no") from error
        async with self._asking:
            if time.monotonic() >= self._until:
                fields = await self._asked()
                token, seconds = fields.get("access_token"), fields.get("expires_in")
                if not isinstance(token, str) or not isinstance(seconds, int | float):
                    raise ServiceUnavailableError("The token's server sent no access_token.", transient=True)
                self._token, self._until = token, time.monotonic() + seconds - MARGIN_S
            return self._token

    async def _asked(self) -> dict[str, Any]:
        account = self._account.service_account
        if account is None:
            base, headers = self._account.metadata_url, {"Metadata-Flavor": "Google"}
            return await self._json(base, "GET", _METADATA_PATH, headers, None, own_host=True)
        url, assertion = await asyncio.to_thread(signed_assertion, account, int(time.time()), self._account.place)
        parts = urlsplit(url)
        form = {"grant_type": _GRANT, "assertion": assertion}
        return await self._json(f"{parts.scheme}://{parts.netloc}", "POST", parts.path, {}, form, own_host=False)

    async def _json(
        self,
        base: str,
        method: str,
        path: str,
        headers: dict[str, str],
        form: dict[str, str] | None,
        *,
        own_host: bool,
    ) -> dict[str, Any]:
        """With ``own_host``, the operator names the host, so its address may be a metadata server's."""
        private = (urlsplit(base).hostname or "",) if own_host else self._account.allow_private
        place, timeout_s = self._account.place, self._account.timeout_s
        server = JsonServer(base.rstrip("/"), table=place, key=None, timeout_s=timeout_s, allow_private=private)
        try:
            answer = await server.send(method, path, headers=headers, form=form)
            value = answer.decoded()
        except UnusableAnswerError as error:
            raise ServiceUnavailableError(f"The token's server: {error}.", executed="no", transient=True) from error
        finally:
            await server.close()
        if answer.status != 200 or not isinstance(value, dict):
            why = f"The token's server answered HTTP {answer.status}."
            if answer.status >= 500:
                raise ServiceUnavailableError.content_free(why, executed="no", transient=True)
            raise ToolExecutionError.content_free(why, executed="no")
        return value


def signed_assertion(path: Path, now: int, place: str) -> tuple[str, str]:
    """Returns the URL of the token server and the signed request of a service account (RFC 7523), from its JSON key.

    Raises:
        ToolExecutionError: the file cannot be used; the message contains no part of the key.
    """
    try:
        import jwt  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        why = f"{place} service_account needs the extra oauth: pip install 'toold[oauth]'."
        raise ToolExecutionError.content_free(why, executed="no") from None
    try:
        key = json.loads(path.read_bytes())
        url, email = str(key["token_uri"]), str(key["client_email"])
        claims = {"iss": email, "scope": SCOPE, "aud": url, "iat": now, "exp": now + ASSERTION_S}
        assertion = jwt.encode(claims, key["private_key"], algorithm="RS256", headers={"kid": key["private_key_id"]})
    except OSError as error:
        why = f"{place} service_account cannot be read ({error.strerror})."
        raise ToolExecutionError(why, executed="no") from None
    except (ValueError, KeyError, TypeError, jwt.PyJWTError):
        why = f"{place} service_account is not the JSON key of a service account."
        raise ToolExecutionError.content_free(why, executed="no") from None
    if urlsplit(url).scheme != "https" and urlsplit(url).hostname not in {"127.0.0.1", "localhost"}:
        why = f"{place} service_account has a token_uri without https."
        raise ToolExecutionError.content_free(why, executed="no")
    return url, assertion
