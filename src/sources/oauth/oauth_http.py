"""Requests to authorization servers, whose addresses come from metadata and are not trusted.

Each request is checked by the source's address policy, goes to ``https://`` or this machine, follows no redirects, and
has limits on time and size. No error contains text of the answer.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from ...protocol.terminal_text import one_line
from ..json_server import JsonAnswer, JsonServer, UnusableAnswerError
from .oauth_settings import is_confidential_url
from .sign_in_values import OAuthFailedError

OAUTH_TIMEOUT_S: Final = 15.0
"""The timeout of one request to an authorization server."""
MAX_OAUTH_BYTES: Final = 1024**2
"""The maximum size of one answer. The metadata of real servers has a few kilobytes."""


class OAuthHttp:
    """Sends requests to the authorization servers of one source."""

    def __init__(self, allow_private: bool | tuple[str, ...]) -> None:
        self._allow_private = allow_private

    async def get(self, url: str) -> JsonAnswer:
        """The answer to a request for metadata.

        Raises:
            OAuthFailedError: there is no answer.
        """
        return await self._send("GET", url)

    async def post(
        self,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonAnswer:
        """The answer to a form, or to ``content`` as JSON.

        Raises:
            OAuthFailedError: there is no answer.
        """
        return await self._send("POST", url, form=form, content=content, headers=headers)

    async def _send(self, method: str, url: str, **request: Any) -> JsonAnswer:
        try:
            where = one_line(urlsplit(url).hostname or "the authorization server", 100)
        except ValueError:
            raise OAuthFailedError("an address in its metadata is not a URL") from None
        if not is_confidential_url(url):
            raise OAuthFailedError(f"{where} would be asked without encryption (http://), which is refused")
        server = JsonServer(
            url, table="the source's", key=None, timeout_s=OAUTH_TIMEOUT_S, allow_private=self._allow_private
        )
        try:
            return await server.send(method, "", max_bytes=MAX_OAUTH_BYTES, **request)
        except UnusableAnswerError as error:
            reason = str(error)
        finally:
            await server.close()
        if reason.startswith("it redirects"):
            reason = "it redirects, which is refused"
        reason = one_line(reason, 300)
        raise OAuthFailedError(reason if where in reason else f"{where}: {reason}")
