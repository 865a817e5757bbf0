"""Asking an API for one operation: its secret, its time, further attempts, redirects; and what came of it."""

import asyncio
import base64
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urldefrag, urlencode, urljoin

import httpcore
import httpx

from ...protocol.error_codes import (
    CallError,
    CallTimeoutError,
    Executed,
    ResultTooLargeError,
    ServiceUnavailableError,
)
from ...tools import Answer, SecretUnavailableError, ToolContext
from ...version import __version__
from ..body_decompression import read_body
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..source_settings import ApiKeyAuth, BasicAuth, OpenApiSettings
from . import api_failures
from .api_operation import ApiOperation
from .api_reader import origin
from .api_response import read_answer, without, words
from .body_encoding import EncodedBody, written_body
from .parameter_encoding import Pairs, written_headers, written_url

MAX_REDIRECTS: Final = 5
MAX_ERROR_BYTES: Final = 64 * 1024
"""Of an answer of failure so much is read."""
LARGE_BYTES: Final = 256 * 1024
"""A larger answer is read into values in a thread."""
_MARGIN_S: Final = 0.1
"""An attempt ends so long before its call does, so that the caller learns what it waited for."""


@dataclass(frozen=True, slots=True)
class _Credentials:
    """How the secret travels. Its ``repr`` shows nothing of it."""

    secret: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Pairs = field(default_factory=list, repr=False)

    @property
    def untold(self) -> list[str]:
        """What no answer is to repeat: the secret, also as its header has it (in Base64 with ``basic``)."""
        return [*filter(None, [self.secret]), *(value.rpartition(" ")[2] for value in self.headers.values())]


@dataclass(slots=True)
class _Attempt:
    """One attempt under way."""

    url: str
    method: str
    headers: dict[str, str]
    content: EncodedBody | None
    credentials: _Credentials
    sent: bool = False
    """The request may have reached the API."""

    def mark_sent(self) -> None:
        self.sent = True


class ApiCaller:
    """Asks one API, with so many requests at once."""

    def __init__(self, source: str, settings: OpenApiSettings, network: CheckedNetwork) -> None:
        self._source = source
        self._settings = settings
        self._network = network
        self._turns = asyncio.Semaphore(settings.max_running)

    async def ask(self, operation: ApiOperation, arguments: Mapping[str, Any], context: ToolContext) -> Answer | str:
        """The operation's answer.

        Raises:
            CallError: what the API said, or why it could not be asked.
        """
        credentials = self._credentials() if operation.with_secret else _Credentials()
        headers = {
            "Accept": "application/json, */*;q=0.5",
            "Accept-Encoding": "gzip, deflate",
            "User-Agent": f"toold/{__version__}",
            **written_headers(operation, arguments),
        }
        url = written_url(operation, arguments)
        content = await written_body(operation.body, arguments, context.files)
        number = 0
        while True:
            attempt = _Attempt(url, operation.method, headers, content, credentials)
            try:
                return await self._in_turn(attempt, context)
            except CallError as error:
                pause = api_failures.pause_before_retry(
                    error, operation.method, number, self._settings.retries, context.remaining()
                )
                if pause is None:
                    raise
            context.progress(f"Retrying {self._source} in {pause:.1f} s.")
            async with context.without_permit():
                await asyncio.sleep(pause)
            number += 1

    def _credentials(self) -> _Credentials:
        auth = self._settings.auth
        if auth is None:
            return _Credentials()
        try:
            secret = auth.secret.read_header_value()
        except SecretUnavailableError as error:
            raise ServiceUnavailableError(
                f"{self._source} cannot be asked: of its secret, {error}; its operator has to see to that.",
                transient=False,
            ) from None
        if isinstance(auth, ApiKeyAuth):
            if auth.place == "query":
                return _Credentials(secret, query=[(auth.name, secret)])
            return _Credentials(secret, {auth.name: secret})
        if isinstance(auth, BasicAuth):
            pair = base64.b64encode(f"{auth.username}:{secret}".encode()).decode()
            return _Credentials(secret, {"Authorization": f"Basic {pair}"})
        return _Credentials(secret, {"Authorization": f"Bearer {secret}"})

    async def _in_turn(self, attempt: _Attempt, context: ToolContext) -> Answer | str:
        """One attempt, when it is its turn; while it waits its call's permit is lent back, so that those who wait for
        one API delay nobody else.
        """
        async with AsyncExitStack() as stack:
            if self._turns.locked():
                await stack.enter_async_context(context.without_permit())
            await stack.enter_async_context(self._turns)
            timeout_s = min(self._settings.timeout_s, context.remaining() - _MARGIN_S)
            if timeout_s <= 0:
                raise CallTimeoutError(f"The time was up before {self._source} could be asked.", executed="no")
            return await self._within(attempt, timeout_s)

    async def _within(self, attempt: _Attempt, timeout_s: float) -> Answer | str:
        """One attempt, and its failures in the words of the error table."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._follow(attempt)
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise api_failures.timed_out(self._source, time.monotonic() - began, sent=attempt.sent) from error
        except ForbiddenAddressError as error:
            raise api_failures.forbidden(self._source, str(error)) from None
        except (httpx.InvalidURL, httpcore.LocalProtocolError) as error:
            raise api_failures.unsendable(self._source, sent=attempt.sent) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.DecodingError, OSError) as error:
            raise api_failures.unreachable(self._source, sent=attempt.sent) from error

    async def _follow(self, attempt: _Attempt) -> Answer | str:
        """Ask, and where the API sends it elsewhere, there: only what reads, and without the secret at others."""
        first = origin(attempt.url)
        for _ in range(MAX_REDIRECTS + 1):
            status, headers, content = await self._exchange(attempt, with_secret=origin(attempt.url) == first)
            location = headers.get("location")
            if status not in {301, 302, 303, 307, 308} or not location:
                return await self._answer(status, headers, content, attempt)
            try:
                self._redirect(attempt, status, urldefrag(urljoin(attempt.url, location)).url)
            except ValueError:
                raise api_failures.redirected(
                    self._source, status, "it leads to no address", executed="maybe"
                ) from None
        raise api_failures.redirected(
            self._source, status, f"so more than {MAX_REDIRECTS} times in a row", executed="maybe"
        )

    def _redirect(self, attempt: _Attempt, status: int, target: str) -> None:
        """Turn the attempt to where the API sends it.

        Raises:
            ProviderError: it does not go there.
        """
        if status == 303 and attempt.method != "GET":  # done, and the answer is there
            attempt.method, attempt.content = "GET", None
        elif attempt.method != "GET":
            executed: Executed = "no" if status in {307, 308} else "maybe"
            raise api_failures.redirected(self._source, status, "what writes is not sent elsewhere", executed=executed)
        if not target.startswith("https://" if attempt.url.startswith("https://") else ("http://", "https://")):
            raise api_failures.redirected(self._source, status, "it leads to no https address", executed="maybe")
        if origin(target) != origin(attempt.url):  # what the caller says in headers is for the API alone
            kept = {"Accept", "Accept-Encoding", "User-Agent"}
            attempt.headers = {name: value for name, value in attempt.headers.items() if name in kept}
        attempt.url = target

    async def _exchange(self, attempt: _Attempt, *, with_secret: bool) -> tuple[int, httpx.Headers, bytes]:
        credentials = attempt.credentials if with_secret else _Credentials()
        headers = {**attempt.headers, **credentials.headers}
        content = attempt.content
        if content is not None:
            headers["Content-Type"] = content.media_type
        url = attempt.url
        if credentials.query:
            url += f"{'&' if '?' in url else '?'}{urlencode(credentials.query, quote_via=quote)}"
        request = httpx.Request(attempt.method, url, headers=headers, content=None if content is None else content.data)
        async with self._network.lend() as line, line.answer(request, attempt.mark_sent) as response:
            return response.status_code, response.headers, await self._read(response)

    async def _read(self, response: httpx.Response) -> bytes:
        """The body, as far as its bound; an answer of failure is cut there, another one refused."""
        failed = not response.is_success
        bound = MAX_ERROR_BYTES if failed else self._settings.max_answer_bytes
        body, whole = await read_body(response, bound)
        if not whole and not failed:
            raise ResultTooLargeError(f"{self._source}'s answer has more than {bound:,} bytes; ask for less at a time.")
        return body

    async def _answer(self, status: int, headers: httpx.Headers, content: bytes, attempt: _Attempt) -> Answer | str:
        content = without(attempt.credentials.untold, content)
        if 200 <= status < 300:
            if len(content) > LARGE_BYTES:
                return await asyncio.to_thread(read_answer, status, headers, content)
            return read_answer(status, headers, content)
        said, value = words(headers, content)
        raise api_failures.refused(self._source, status, said, value, headers.get("retry-after"), datetime.now(UTC))
