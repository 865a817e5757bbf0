"""The interface of vendor transports (an SDK or plain HTTP), and the plan of a call's attempts within its time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from ..protocol.error_codes import CallError
from ..protocol.json_text import InvalidJsonError, parse_json
from . import vendor_errors
from .completion import Delta, OnDelta
from .request_body import Body
from .vendor_info import VendorAccess, VendorInfo

RETRY_PAUSE_S: Final = 8.0
"""The longest pause between attempts in the SDKs (MAX_RETRY_DELAY in openai, zhipuai and zai)."""
MAX_RETRIES: Final = 2
"""The default of the openai SDK."""
CONNECT_TIMEOUT_S: Final = 8.0
"""The timeout for establishing a connection (the default of zhipuai and zai)."""

ReadChunk = Callable[[Any], Delta | None]
"""Reads one decoded chunk of a stream. Raises ``InvalidResponseError`` if it is not a chunk."""


END_OF_STREAM: Final = "[DONE]"


def deliver(read: ReadChunk, chunk: Any, on_delta: OnDelta) -> None:
    """Reads a chunk and passes its text on."""
    delta = read(chunk)
    if delta is not None:
        on_delta(delta)


def is_event_stream(headers: Mapping[str, str]) -> bool:
    """Whether the response is a stream. Servers that cannot stream answer with a whole completion."""
    return media_type(headers) not in ("application/json", "text/html")


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """The number of attempts of a call, and their timeout."""

    timeout_s: float
    """The timeout per attempt. The SDKs apply it to each wait for data, not to the whole attempt."""
    retries: int
    """The number of attempts after the first."""


def plan_attempts(remaining_s: float, attempt_s: float) -> AttemptPlan:
    """Divides the remaining seconds into attempts of at most ``attempt_s`` seconds.

    Allows a retry only if all attempts and pauses fit at their maximum length, so that the SDKs, which apply timeouts
    per attempt, never sleep or wait past the deadline.
    """
    timeout_s = min(attempt_s, remaining_s)
    retries = int((remaining_s - timeout_s) // (attempt_s + RETRY_PAUSE_S))
    return AttemptPlan(timeout_s, max(0, min(MAX_RETRIES, retries)))


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to upload as ``multipart/form-data``."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request other than a completion."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    """Relative to the base URL, beginning with a slash. Parts that a caller supplied are quoted."""
    body: Body | None = None
    """The data, sent as JSON or, with an upload, as further fields of the form."""
    query: Mapping[str, str] = field(default_factory=dict)
    upload: Upload | None = None
    max_bytes: int | None = None
    """The maximum size of the answer. Only plain HTTP supports this limit."""


def sdk_arguments(request: ApiRequest) -> dict[str, Any]:
    """The arguments of a request method (``get``, ``post``, ``delete``) of the SDKs, whose clients have a common
    base.
    """
    options: dict[str, Any] = {"params": dict(request.query)}
    arguments: dict[str, Any] = {"options": options}
    if request.body is not None:
        arguments["body"] = request.body
    if request.upload is not None:
        options["headers"] = {"Content-Type": "multipart/form-data"}
        arguments["files"] = [("file", (request.upload.name, request.upload.content))]
    return arguments


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """The response to a successful request."""

    content: bytes
    headers: Mapping[str, str]
    """Header names are in lower case."""


class VendorTransport(Protocol):
    """A transport to one vendor. Its methods raise ``CallError`` for all vendor and network failures."""

    name: str
    """Package and version, for display."""

    async def ask(self, body: Body, attempts: AttemptPlan) -> tuple[Any, Mapping[str, str]]:
        """Posts a completion request. Returns the decoded JSON response and its headers, names in lower case."""
        ...

    async def stream(self, body: Body, attempts: AttemptPlan, read: ReadChunk, on_delta: OnDelta) -> Mapping[str, str]:
        """Posts a completion request, reads chunks with ``read``, and passes the deltas to ``on_delta`` on the loop.

        Returns the response headers. On cancellation it closes the stream and waits until no thread uses it.
        """
        ...

    async def send(self, request: ApiRequest, attempts: AttemptPlan) -> ApiAnswer:
        """Sends a request other than a completion and reads the whole response. Cancellation is as in ``stream``."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TransportErrors:
    """Maps the failures of one vendor and key to ``CallError``; reads the clock for ``Retry-After`` dates."""

    vendor: VendorInfo
    access: VendorAccess

    def refused(self, status: int, body: str, headers: Mapping[str, str]) -> CallError:
        now = datetime.now(UTC)
        return self._refused(vendor_errors.read_refusal(status, body, headers, now))

    def broken_stream(self, error: Any) -> CallError:
        """Returns the error for an error in a stream, or in place of a completion."""
        return self._refused(vendor_errors.read_late_refusal(error))

    def checked(self, document: Any) -> Any:
        """Returns a chunk or a whole response, unless it is an error. OpenRouter and others report errors with HTTP
        200.

        Raises:
            CallError: the document is an error.
        """
        if isinstance(document, dict) and document.get("error"):
            raise self.broken_stream(document["error"])
        return document

    def document(self, body: bytes, headers: Mapping[str, str]) -> Any:
        """Decodes a whole response.

        Raises:
            CallError: the response is an error, or not JSON.
        """
        if media_type(headers) == "text/html":
            raise vendor_errors.not_understood(self.vendor, "it is a web page, not JSON; check its base URL")
        try:
            return self.checked(parse_json(body))
        except InvalidJsonError as error:
            raise self.not_json(error) from error

    def timed_out(self, error: BaseException, attempts: AttemptPlan) -> CallError:
        """Returns the error for an attempt's timeout, either of the connection or of the response."""
        if vendor_errors.never_connected(error):
            return vendor_errors.unreachable(self.vendor, error)
        return vendor_errors.timed_out(self.vendor, attempts.timeout_s, silent_s=attempts.timeout_s)

    def unreachable(self, error: BaseException) -> CallError:
        return vendor_errors.unreachable(self.vendor, error)

    def not_understood(self, why: str) -> CallError:
        return vendor_errors.not_understood(self.vendor, why)

    def not_json(self, error: Exception) -> CallError:
        return vendor_errors.not_json(self.vendor, error)

    def _refused(self, refusal: vendor_errors.VendorRefusal) -> CallError:
        return vendor_errors.refused(self.vendor, refusal, secret=self.access.api_key.get_secret_value())
