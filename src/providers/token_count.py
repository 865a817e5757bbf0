"""How many tokens a question has, before it is asked: by the vendor's count, or by our own estimate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .completion import CompletionRequest
from .completion_parsing import SIMULATED, NotUnderstoodError
from .request_body import Body
from .token_estimate import ESTIMATE_ERROR, estimate_body
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of a question, and how sure that is."""

    tokens: int
    counted_by: Literal["vendor", "estimate"]
    error: float = 0.0
    """The share by which the true number may be off to either side; 0 where the vendor counted."""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class TokenCountApi:
    """Where a vendor counts, and where in its answer the number stands."""

    path: str
    read: Callable[[Any], int]
    """Raises ``NotUnderstoodError``."""


class BodyPreview(Protocol):
    """``VendorProvider.preview``."""

    def __call__(self, request: CompletionRequest, *, stream: bool = False) -> Body: ...


class TokenCounter:
    """A vendor's count, and the estimate for where it cannot be had in time."""

    def __init__(self, exchange: VendorExchange, counting: TokenCountApi, preview: BodyPreview) -> None:
        self._exchange = exchange
        self._counting = counting
        self._preview = preview

    async def count(self, request: CompletionRequest, *, timeout_s: float) -> TokenCount:
        """Have the vendor count the question's messages and tools; costs a request, but no tokens.

        Raises:
            InvalidArgumentsError: the question could not be asked either.
            CallError: a subclass by what the vendor said.
        """
        body = self._preview(request)
        counted: Body = {key: body[key] for key in ("model", "messages", "tools") if key in body}
        asked = ApiRequest(method="POST", path=self._counting.path, body=counted)
        return await self._exchange.ask(asked, self._read, timeout_s=timeout_s)

    def estimate(self, request: CompletionRequest) -> TokenCount:
        """The same by our own estimate. Sends nothing.

        Raises:
            InvalidArgumentsError: the question could not be asked.
        """
        return TokenCount(estimate_body(self._preview(request)), "estimate", ESTIMATE_ERROR)

    def _read(self, document: Any) -> TokenCount:
        tokens = self._counting.read(document)
        return TokenCount(tokens, "vendor", simulated=document.get(SIMULATED) is True)


def count_at(*path: str) -> Callable[[Any], int]:
    """A reader of the number that stands there, key below key."""

    def read(document: Any) -> int:
        value = document
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise NotUnderstoodError(f"there is no number at {'.'.join(path)}")
        return value

    return read
