"""Sends the request of one operation: credentials, timeouts, retries and redirects."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urldefrag, urlencode, urljoin

import httpcore
import httpx

from ...fairness import Permits
from ...protocol.error_codes import (
    CallError,
    CallTimeoutError,
    Executed,
    ResultTooLargeError,
    ServiceUnavailableError,
)
from ...protocol.tool_call import ApiResponse, TextContent
from ...protocol.trace_context import TRACEPARENT, current_traceparent
from ...tools import SecretUnavailableError, ToolContext, ToolOutput
from ...version import __version__
from ..body_decompression import read_body
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..source_auth import NO_AUTH, ApiKeyAuth, AuthValues, caller_auth, operator_auth, worded_for_user
from ..source_settings import OpenApiSettings
from . import api_failures
from .api_operation import ApiOperation
from .api_response import error_message, read_answer, redact_secrets
from .body_encoding import EncodedBody, encode_body
from .kept_headers import kept_headers
from .next_pages import NextPages, next_page_url
from .parameter_encoding import encode_headers, encode_url
from .request_origin import origin

MAX_REDIRECTS: Final = 5
MAX_ERROR_BYTES: Final = 64 * 1024
"""The maximum number of bytes that are read of an error response."""
LARGE_BYTES: Final = 32 * 1024
"""Larger responses are decoded in a thread."""
_MARGIN_S: Final = 0.1
"""An attempt ends this long before its call's deadline, so that the caller learns the reason."""


@dataclass(slots=True)
class _Attempt:
    """One running attempt."""

    operation: ApiOperation
    context: ToolContext
    url: str
    method: str
    headers: dict[str, str]
    content: EncodedBody | None
    credentials: AuthValues
    sent: bool = False
    """Whether the request may have reached the API."""

    def mark_sent(self) -> None:
        self.sent = True


class ApiCaller:
    """Sends requests to one API, with limited concurrency that principals share fairly."""

    def __init__(self, source: str, settings: OpenApiSettings, network: CheckedNetwork) -> None:
        self._source = source
        self._settings = settings
        self._network = network
        self._permits = Permits(source, settings.max_running)
        self._next_pages = NextPages()

    async def call(
        self, operation: ApiOperation, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolOutput | str:
        """Sends the operation's request and returns the answer.

        Raises:
            CallError: the API's error, or the reason why it could not be called.
        """
        credentials = await self._credentials(context) if operation.with_secret else NO_AUTH
        headers = {
            "Accept": "application/json, */*;q=0.5",
            "Accept-Encoding": "gzip, deflate",
            "User-Agent": f"toold/{__version__}",
            **_trace_header(),
            **encode_headers(operation, arguments),
        }
        url = self._url(operation, arguments, context)
        content = await encode_body(operation.body, arguments, context.files)
        number = 0
        while True:
            attempt = _Attempt(operation, context, url, operation.method, headers, content, credentials)
            try:
                return await self._attempt_with_permit(attempt, context)
            except CallError as error:
                delay = api_failures.retry_delay_s(
                    error, operation.method, number, self._settings.retries, context.remaining()
                )
                if delay is None:
                    raise
            context.progress(f"Retrying {self._source} in {delay:.1f} s.")
            async with context.without_permit():
                await asyncio.sleep(delay)
            number += 1

    def _url(self, operation: ApiOperation, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Returns the URL of the request, or of the next page if the caller asks for it."""
        if operation.next_page is None or operation.next_page not in arguments:
            return encode_url(operation, arguments)
        name = arguments[operation.next_page]
        return self._next_pages.url(context.principal.name, operation.name, operation.next_page, name)

    async def _credentials(self, context: ToolContext) -> AuthValues:
        auth = self._settings.auth
        if auth is not None and auth.credential is not None:
            return await caller_auth(auth, context)
        try:
            return operator_auth(auth)
        except SecretUnavailableError as error:
            raise ServiceUnavailableError(
                f"{self._source} cannot be called: {error}; the operator has to fix this.",
                transient=False,
            ) from None

    async def _attempt_with_permit(self, attempt: _Attempt, context: ToolContext) -> ToolOutput | str:
        """Makes one attempt when a permit is free. While it waits, it gives back its call's permit, so that calls to a
        slow API do not delay other calls.
        """
        async with AsyncExitStack() as stack:
            principal = context.principal.name
            if not self._permits.free(principal):
                await stack.enter_async_context(context.without_permit())
            await stack.enter_async_context(self._permits.of(principal, ""))
            timeout_s = min(self._settings.timeout_s, context.remaining() - _MARGIN_S)
            if timeout_s <= 0:
                raise CallTimeoutError(f"The deadline passed before {self._source} could be called.", executed="no")
            return await self._attempt(attempt, timeout_s)

    async def _attempt(self, attempt: _Attempt, timeout_s: float) -> ToolOutput | str:
        """Makes one attempt, and maps its failures to call errors."""
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

    async def _follow(self, attempt: _Attempt) -> ToolOutput | str:
        """Sends the request and follows redirects: reads only, and without the secret to other origins."""
        first = origin(attempt.url)
        for _ in range(MAX_REDIRECTS + 1):
            status, headers, content = await self._send(attempt, with_secret=origin(attempt.url) == first)
            location = headers.get("location")
            if status not in {301, 302, 303, 307, 308} or not location:
                return await self._answer(status, headers, content, attempt)
            try:
                self._redirect(attempt, status, urldefrag(urljoin(attempt.url, location)).url)
            except ValueError:
                raise api_failures.redirected(
                    self._source, status, "its location is not a URL", executed="maybe"
                ) from None
        raise api_failures.redirected(
            self._source, status, f"the chain is longer than {MAX_REDIRECTS}", executed="maybe"
        )

    def _redirect(self, attempt: _Attempt, status: int, target: str) -> None:
        """Points the attempt at the target of a redirect.

        Raises:
            ProviderError: the redirect is not followed.
        """
        if status == 303 and attempt.method != "GET":  # the write is done, and its answer is at the target
            attempt.method, attempt.content = "GET", None
        elif attempt.method != "GET":
            executed: Executed = "no" if status in {307, 308} else "maybe"
            raise api_failures.redirected(self._source, status, "writes are not redirected", executed=executed)
        if not target.startswith("https://" if attempt.url.startswith("https://") else ("http://", "https://")):
            raise api_failures.redirected(self._source, status, "its location is not an https URL", executed="maybe")
        if origin(target) != origin(attempt.url):  # arguments in headers are only for the API
            safe = {"Accept", "Accept-Encoding", "User-Agent"}
            attempt.headers = {name: value for name, value in attempt.headers.items() if name in safe}
        attempt.url = target

    async def _send(self, attempt: _Attempt, *, with_secret: bool) -> tuple[int, httpx.Headers, bytes]:
        credentials = attempt.credentials if with_secret else NO_AUTH
        headers = {**attempt.headers, **credentials.headers}
        content = attempt.content
        if content is not None:
            headers["Content-Type"] = content.media_type
        url = attempt.url
        if credentials.query:
            url += f"{'&' if '?' in url else '?'}{urlencode(credentials.query, quote_via=quote)}"
        request = httpx.Request(attempt.method, url, headers=headers, content=None if content is None else content.data)
        async with self._network.acquire() as connection, connection.answer(request, attempt.mark_sent) as response:
            return response.status_code, response.headers, await self._read(response)

    async def _read(self, response: httpx.Response) -> bytes:
        """Returns the body. An error response that is too large is truncated; any other response that is too large is
        an error.
        """
        failed = not response.is_success
        limit = MAX_ERROR_BYTES if failed else self._settings.max_answer_bytes
        body, complete = await read_body(response, limit)
        if not complete and not failed:
            raise ResultTooLargeError(f"{self._source}'s answer has more than {limit:,} bytes; request less at a time.")
        return body

    async def _answer(self, status: int, headers: httpx.Headers, content: bytes, attempt: _Attempt) -> ToolOutput | str:
        secrets = attempt.credentials.redacted_values
        shown = kept_headers(headers, secrets)
        if 200 <= status < 300:
            read = partial(_read_answer, secrets, status, headers, content, shown.get("location", ""))
            answer = await asyncio.to_thread(read) if len(content) > LARGE_BYTES else read()
            return self._with_next_page(answer, status, headers, shown, attempt)
        if shown:
            attempt.context.report_response(ApiResponse(status, shown))
        content = redact_secrets(secrets, content)
        message, value = error_message(headers, content)
        error = api_failures.status_error(
            self._source, status, message, value, headers.get("retry-after"), datetime.now(UTC)
        )
        raise worded_for_user(error, self._source, self._settings.auth)

    def _with_next_page(
        self,
        answer: ToolOutput | str,
        status: int,
        headers: httpx.Headers,
        shown: dict[str, str],
        attempt: _Attempt,
    ) -> ToolOutput | str:
        """Returns the answer. If there is a next page, the text also says so, because few clients show metadata."""
        operation, name = attempt.operation, None
        if operation.next_page is not None:
            data = answer.data if isinstance(answer, ToolOutput) else None
            auth = self._settings.auth
            without = auth.name if isinstance(auth, ApiKeyAuth) and auth.location == "query" else None
            url = next_page_url(headers.get_list("link"), data, attempt.url, without=without)
            if url is not None and origin(url) == origin(operation.server):
                name = self._next_pages.keep(attempt.context.principal.name, operation.name, url)
        if shown or name is not None:
            attempt.context.report_response(ApiResponse(status, shown, name))
        if name is None or not isinstance(answer, ToolOutput):
            return answer
        note = f"There is a next page: repeat the call with {operation.next_page} = {name!r}."
        return replace(answer, blocks=(*answer.blocks, TextContent(note)))


def _trace_header() -> dict[str, str]:
    traceparent = current_traceparent.get()
    return {} if traceparent is None else {TRACEPARENT: traceparent}


def _read_answer(
    secrets: list[str], status: int, headers: httpx.Headers, content: bytes, location: str
) -> ToolOutput | str:
    return read_answer(status, headers, redact_secrets(secrets, content), location=location)
