"""HTTP to a remote agent: checked addresses, bounded answers and streams, and the source's secret."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Final, NamedTuple

import httpcore
import httpx
import msgspec

from ...protocol.a2a.remote_request import RemoteHttpRequest
from ...protocol.error_codes import CallError, PermissionDeniedError, ResultTooLargeError, ServiceUnavailableError
from ...protocol.json_pieces import LONG_BYTES, TooComplexError, TooManyValuesError, decode_in_pieces
from ...protocol.trace_context import TRACEPARENT, current_traceparent
from ...tools import SecretUnavailableError, ToolContext, ValueMask
from ...version import __version__
from ..body_decompression import read_body
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..json_surrogates import replace_lone_surrogates
from ..read_rate import MESSAGES_PER_S, ReadRate
from ..source_auth import AuthValues, caller_auth, operator_auth
from ..source_settings import A2ASettings
from .remote_failures import lost, redirected, unreachable, unreadable

MAX_STREAM_BYTES: Final = 64 * 1024**2
"""The maximum size of one stream, for all events together."""
_LINE_ENDS: Final = (b"\r\n", b"\r")


class RemoteAnswer(NamedTuple):
    """A response that was read completely."""

    status: int
    headers: httpx.Headers
    body: bytes


class RemoteStream:
    """The events of one response. The stream holds a connection until it is closed."""

    def __init__(self, source: str, response: httpx.Response, resources: AsyncExitStack, max_bytes: int) -> None:
        """``max_bytes`` limits each event."""
        self._source = source
        self._resources = resources
        self._max_bytes = max_bytes
        self._parts: AsyncIterator[bytes] = response.aiter_raw()
        self._rate = ReadRate(MESSAGES_PER_S)
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._total = 0
        self._ready: list[bytes] = []

    async def next_event(self) -> bytes | None:
        """The data of the next event; None at the end.

        Raises:
            CallError: the connection was lost, or too much was sent.
        """
        while not self._ready:
            with sent_failures(self._source):
                part = await anext(self._parts, None)
            if part is None:
                return None
            self._add(part)
        await asyncio.sleep(self._rate.consume())
        return self._ready.pop(0)

    async def close(self) -> None:
        """Ends the response; its connection is closed if it was not read completely."""
        await self._resources.aclose()

    def _add(self, part: bytes) -> None:
        self._total += len(part)
        self._held.append(part)
        self._held_bytes += len(part)
        if b"\n" in part or b"\r" in part:
            self._split()
        if self._held_bytes > self._max_bytes or self._total > MAX_STREAM_BYTES:
            raise ResultTooLargeError.content_free(
                f"{self._source}'s stream has an event larger than its max_answer_bytes, or more than "
                f"{MAX_STREAM_BYTES // 1024**2} MiB in total."
            )

    def _split(self) -> None:
        """Splits the complete events from the received data."""
        text = b"".join(self._held)
        half = text.endswith(b"\r")  # the other half of a line end may follow
        for end in _LINE_ENDS:
            text = text[: len(text) - half].replace(end, b"\n") + text[len(text) - half :]
        *events, rest = text.split(b"\n\n")
        self._held, self._held_bytes = [rest], max([len(rest), *map(len, events)])
        self._ready += filter(None, map(_data_of, events))


def _data_of(event: bytes) -> bytes:
    lines = (line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(lines)


class RemoteHttp:
    """Sends the requests of one source."""

    def __init__(
        self, source: str, settings: A2ASettings, network: CheckedNetwork, credentials: AuthValues | None = None
    ) -> None:
        """``credentials`` are the caller's, if the source has no secret of the operator."""
        self.source = source
        self._settings = settings
        self._network = network
        self._credentials = credentials
        self._mask = None if credentials is None else ValueMask(credentials.redacted_values)

    async def of_caller(self, context: ToolContext) -> "RemoteHttp":
        """Returns the client for a call's requests: with the credential of its principal, if each caller has one.

        Raises:
            CallError: as raised by ``caller_auth``.
        """
        auth = self._settings.auth
        if auth is None or not auth.credentials:
            return self
        return RemoteHttp(self.source, self._settings, self._network, await caller_auth(auth, context))

    async def ask(self, request: RemoteHttpRequest, *, max_bytes: int, with_secret: bool = True) -> RemoteAnswer:
        """Sends a request, and reads its whole answer. The caller limits its time.

        Raises:
            CallError: there is no answer, or it is too large. ``executed`` says whether the request may have arrived.
        """
        opened = await self._open(request, with_secret=with_secret)
        async with opened.resources:
            return await self._whole(opened.response, max_bytes)

    async def stream(self, request: RemoteHttpRequest) -> RemoteStream | RemoteAnswer:
        """Sends a request; returns the stream of its events, or the whole answer if it is not a stream.

        Raises:
            CallError: as raised by ``ask``.
        """
        opened = await self._open(request, with_secret=True)
        async with opened.resources as resources:
            response = opened.response
            if response.is_success and response.headers.get("content-type", "").startswith("text/event-stream"):
                if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
                    raise unreadable(self.source, "its stream is compressed, although the daemon asked for identity")
                max_bytes = self._settings.max_answer_bytes
                return RemoteStream(self.source, response, resources.pop_all(), max_bytes)
            return await self._whole(response, self._settings.max_answer_bytes)

    async def decoded(self, body: bytes) -> Any:
        """The JSON of an answer, without the source's secret.

        Raises:
            ProviderError: the answer is not JSON, or has too many values.
        """
        return await asyncio.to_thread(self._decoded, body) if len(body) > LONG_BYTES else self._decoded(body)

    def redact_text(self, text: str) -> str:
        """The text without the source's secret."""
        return text if self._mask is None else self._mask.text(text)

    def _decoded(self, body: bytes) -> Any:
        try:
            value = decode_in_pieces(replace_lone_surrogates(body))
        except TooManyValuesError:
            raise unreadable(self.source, "it has too many values") from None
        except TooComplexError as error:
            raise unreadable(self.source, str(error)) from None
        except RecursionError:
            raise unreadable(self.source, "it is nested too deeply") from None
        except (msgspec.DecodeError, ValueError):
            what = "HTML" if body.lstrip()[:1] == b"<" else "not JSON" if body.strip() else "empty"
            raise unreadable(self.source, f"it is {what}") from None
        return value if self._mask is None else self._mask.value(value)

    async def _open(self, request: RemoteHttpRequest, *, with_secret: bool) -> "_Opened":
        sent = False

        def mark_sent() -> None:
            nonlocal sent
            sent = True

        headers = {"User-Agent": f"toold/{__version__}", "Accept-Encoding": "identity", **request.headers}
        traceparent = current_traceparent.get()
        if traceparent is not None:
            headers[TRACEPARENT] = traceparent
        if with_secret:
            headers |= await self._secret_headers()
        async with AsyncExitStack() as stack:
            with _failures(self.source, lambda: sent):
                made = httpx.Request(request.method, request.url, headers=headers, content=request.body)
                connection = await stack.enter_async_context(self._network.acquire())
                response = await stack.enter_async_context(connection.answer(made, mark_sent))
            if response.has_redirect_location:
                raise redirected(self.source, response.status_code)
            return _Opened(response, stack.pop_all())

    async def _whole(self, response: httpx.Response, max_bytes: int) -> RemoteAnswer:
        with sent_failures(self.source):
            body, complete = await read_body(response, max_bytes)
        if not complete:
            raise ResultTooLargeError.content_free(f"{self.source}'s answer has more than {max_bytes:,} bytes.")
        return RemoteAnswer(response.status_code, response.headers, body)

    async def _secret_headers(self) -> Mapping[str, str]:
        if self._credentials is not None:
            return self._credentials.headers
        try:
            values = await asyncio.to_thread(operator_auth, self._settings.auth)
        except SecretUnavailableError as error:
            raise ServiceUnavailableError(
                f"{self.source} cannot be called: {error}; the operator has to fix this.", transient=False
            ) from None
        if values.redacted_values:
            self._mask = ValueMask(values.redacted_values)
        return values.headers


class _Opened(NamedTuple):
    """A response whose body is not read yet, and the resources to close after it."""

    response: httpx.Response
    resources: AsyncExitStack


@contextmanager
def _failures(source: str, sent: Any) -> Iterator[None]:
    """Maps the failures of a request to errors of a call."""
    try:
        yield
    except CallError:
        raise
    except ForbiddenAddressError as error:
        raise PermissionDeniedError(f"{source}: {error}.", summary=f"{source} has a forbidden address.") from None
    except (httpx.InvalidURL, httpcore.LocalProtocolError, httpcore.UnsupportedProtocol) as error:
        raise unreachable(source, "has an address that cannot be requested") from error
    except httpx.DecodingError as error:
        raise unreadable(source, "its compression is invalid") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
        if sent():
            raise lost(source, "disconnected") from error
        raise unreachable(source, "cannot be reached") from error


@contextmanager
def sent_failures(source: str) -> Iterator[None]:
    """Maps the failures of an answer that is being read."""
    with _failures(source, lambda: True):
        yield
