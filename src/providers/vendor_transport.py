"""What carries a question to a vendor: one of its SDKs, or plain HTTP. And how its time is cut into attempts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from ..protocol.error_codes import CallError
from . import vendor_errors
from .completion import Delta, OnDelta
from .request_body import Body
from .vendor_info import VendorAccess, VendorInfo

RETRY_PAUSE_S: Final = 8.0
"""The longest pause that the SDKs make between attempts (MAX_RETRY_DELAY in openai, zhipuai and zai)."""
MAX_RETRIES: Final = 2
"""As many further attempts as the openai SDK makes by default."""
CONNECT_TIMEOUT_S: Final = 8.0
"""How long a connection may take to be made (the default of zhipuai and zai)."""

ReadChunk = Callable[[Any], Delta | None]
"""Takes one decoded chunk of a stream; raises ``answer.NotUnderstoodError`` for what is none."""


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """How often a call may be tried, and how long each time."""

    timeout_s: float
    """Of one attempt, as the SDKs count it: for whatever piece of the answer they wait for."""
    retries: int
    """Further attempts after the first, each of which still fits with the pause before it."""


def plan_attempts(left_s: float, attempt_s: float) -> AttemptPlan:
    """Cut the seconds that are left into attempts of at most ``attempt_s`` seconds.

    A retry is allowed only where all attempts and pauses fit even if each takes its whole time. So the SDKs, which
    count time-outs per attempt, never sleep or wait past the deadline.
    """
    timeout_s = min(attempt_s, left_s)
    retries = int((left_s - timeout_s) // (attempt_s + RETRY_PAUSE_S))
    return AttemptPlan(timeout_s, max(0, min(MAX_RETRIES, retries)))


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on its way to a vendor, as ``multipart/form-data``."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request that is no completion: its path below the base URL, and what goes with it."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    """Begins with a slash; what a caller named in it is quoted."""
    body: Body | None = None
    """JSON; beside an upload, the form's other fields."""
    query: Mapping[str, str] = field(default_factory=dict)
    upload: Upload | None = None


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What came back on a request that the vendor took."""

    content: bytes
    headers: Mapping[str, str]
    """Names in lower case."""


class VendorTransport(Protocol):
    """One way to a vendor. Its methods raise ``CallError`` for all that the vendor and the network do."""

    name: str
    """For people: package and version."""

    async def ask(self, body: Body, attempts: AttemptPlan) -> tuple[Any, Mapping[str, str]]:
        """Post the question; the decoded JSON answer, and its headers, names in lower case."""
        ...

    async def stream(self, body: Body, attempts: AttemptPlan, read: ReadChunk, on_delta: OnDelta) -> Mapping[str, str]:
        """Post the question and pass each chunk through ``read``, what it returns to ``on_delta`` on the loop.

        The answer's headers. Cancelled, it closes the stream, and returns once nothing works on it any more.
        """
        ...

    async def send(self, request: ApiRequest, attempts: AttemptPlan) -> ApiAnswer:
        """Send another request than a question, and read its answer whole. Cancelled, it ends as ``stream`` does."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TransportErrors:
    """The mapping of failures for one vendor and key, at the edge where the clock is."""

    vendor: VendorInfo
    access: VendorAccess

    def refused(self, status: int, body: str, headers: Mapping[str, str]) -> CallError:
        return self._refused(vendor_errors.read_refusal(status, body, headers))

    def broken_stream(self, error: Any) -> CallError:
        """For an error object within a stream."""
        code, message = vendor_errors.read_error(error) if isinstance(error, Mapping) else ("", str(error))
        return self._refused(vendor_errors.VendorRefusal(0, code, message))

    def timed_out(self, error: BaseException, attempts: AttemptPlan) -> CallError:
        """For an attempt's time-out: to connect, or to wait for the answer."""
        if vendor_errors.never_connected(error):
            return vendor_errors.unreachable(self.vendor, error)
        return vendor_errors.timed_out(self.vendor, attempts.timeout_s, silent_s=attempts.timeout_s)

    def unreachable(self, error: BaseException) -> CallError:
        return vendor_errors.unreachable(self.vendor, error)

    def not_json(self) -> CallError:
        return vendor_errors.not_understood(self.vendor, "it is not JSON")

    def _refused(self, refusal: vendor_errors.VendorRefusal) -> CallError:
        secret = self.access.api_key.get_secret_value()
        return vendor_errors.refused(self.vendor, refusal, secret=secret, now=datetime.now(UTC))
