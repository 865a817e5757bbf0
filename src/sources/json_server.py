"""Requests JSON from a server that the operator has configured.

Each question has one time limit. Redirects are refused, addresses are checked like those of sources, and answers are
limited in size. Messages contain neither a key nor the text of a server's error, which may quote a key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

import httpcore
import httpx
import msgspec

from ..tools import SecretUnavailableError
from ..version import __version__
from .address_policy import AddressPolicy
from .body_decompression import read_body
from .checked_network import CheckedNetwork, ForbiddenAddressError
from .source_auth import SecretTable

MAX_JSON_BYTES: Final = 8 * 1024**2
"""The maximum size of one answer. A prompt of a million characters fits, including escapes and surrounding messages."""
MAX_REQUESTS_PER_SERVER: Final = 8
"""The maximum number of simultaneous requests. Further questions wait, within their time limit."""

_Answer = TypeVar("_Answer")


class UnusableAnswerError(Exception):
    """The server cannot be asked, or its answer cannot be used; the message gives the reason."""


class JsonAnswer(NamedTuple):
    """A response that was read completely."""

    status: int
    body: bytes
    etag: str | None

    def decoded(self) -> Any:
        """The value of the body. Blocks for long bodies.

        Raises:
            UnusableAnswerError: the body is not JSON.
        """
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise UnusableAnswerError("its answer is not JSON") from None


class JsonServer:
    """One server. ``base`` is the base URL of all paths, without ``/`` at its end."""

    def __init__(
        self,
        base: str,
        *,
        table: str,
        key: SecretTable | None,
        timeout_s: float,
        allow_private: bool | tuple[str, ...],
        allowed_by: str | None = None,
    ) -> None:
        """``table`` is the settings table, such as ``[registry]``. ``allowed_by`` is the setting that errors name for
        private addresses; by default, ``allow_private`` of the table.
        """
        self._base = base
        self._key = key
        self._timeout_s = timeout_s
        self._network = CheckedNetwork(AddressPolicy(allow_private, setting=allowed_by or f"{table} allow_private"))
        self._free = asyncio.Semaphore(MAX_REQUESTS_PER_SERVER)

    async def ask(self, question: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Ask a question, which calls ``request`` one or more times, within the time limit.

        Raises:
            UnusableAnswerError: the server cannot be asked, or its answer cannot be used.
        """
        host = urlsplit(self._base).hostname or self._base
        try:
            async with asyncio.timeout(self._timeout_s), self._free:
                return await question()
        except ForbiddenAddressError as error:
            reason = str(error)
        except SecretUnavailableError as error:
            reason = f"its key cannot be read: {error}"
        except (TimeoutError, httpcore.TimeoutException):
            reason = f"{host} did not answer within {self._timeout_s:g} s"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError):
            reason = f"{host} cannot be reached"
        except (httpx.InvalidURL, httpx.DecodingError, ValueError):
            reason = f"{host} sent an invalid response"
        raise UnusableAnswerError(reason)

    async def send(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: Any = None,
        form: Mapping[str, str] | None = None,
        max_bytes: int = MAX_JSON_BYTES,
    ) -> JsonAnswer:
        """Ask a question that consists of one ``request``. A ``token`` is sent as ``Authorization: Bearer``.

        Raises:
            UnusableAnswerError: the server cannot be asked, or its answer cannot be used.
        """
        sent = {**(headers or {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}
        return await self.ask(
            lambda: self.request(method, path, headers=sent, content=content, form=form, max_bytes=max_bytes)
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: Any = None,
        form: Mapping[str, str] | None = None,
        max_bytes: int = MAX_JSON_BYTES,
    ) -> JsonAnswer:
        """Send one request, with ``content`` as JSON, or a ``form``; ``max_bytes`` limits the answer. Call this only
        within a question of ``ask``, which formats the errors.
        """
        sent = {
            "User-Agent": f"toold/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            # Questions are rare, so the server would usually have closed a kept connection.
            "Connection": "close",
            **(headers or {}),
        }
        if self._key is not None:
            key = await asyncio.to_thread(self._key.secret.read_header_value)
            sent["Authorization"] = f"Bearer {key}"
        body = None
        if content is not None:
            sent["Content-Type"] = "application/json"
            body = msgspec.json.encode(content)
        elif form is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form).encode()
        request = httpx.Request(method, self._base + path, headers=sent, content=body)
        async with self._network.acquire() as connection, connection.answer(request, lambda: None) as response:
            if response.has_redirect_location:
                raise UnusableAnswerError(
                    f"it redirects (HTTP {response.status_code}), which is refused; set url to the new location"
                )
            read, complete = await read_body(response, max_bytes)
        if not complete:
            raise UnusableAnswerError(f"it sent more than {max_bytes // 1024**2} MiB")
        return JsonAnswer(response.status_code, read, response.headers.get("etag"))

    async def close(self) -> None:
        """Close the connections. Connections of running requests are closed when the requests end."""
        await self._network.close()
