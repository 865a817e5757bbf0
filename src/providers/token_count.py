"""The number of tokens of a request: the vendor's count, or an estimate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .completion import CompletionRequest
from .completion_parsing import SIMULATED
from .request_body import Body
from .response_values import InvalidResponseError
from .token_estimate import ESTIMATE_ERROR, estimate_body
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The number of tokens of a request, and the error of this number."""

    tokens: int
    counted_by: Literal["vendor", "estimate"]
    error: float = 0.0
    """The relative error in either direction; 0 if the vendor counted."""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class TokenCountApi:
    """The path of a vendor's token counter, and the reader of its response."""

    path: str
    read: Callable[[Any], int]
    """Raises ``InvalidResponseError``."""


class BodyPreview(Protocol):
    """Implements ``VendorProvider.preview``."""

    def __call__(self, request: CompletionRequest, *, stream: bool = False) -> Body: ...


class TokenCounter:
    """The vendor's token counter, and the estimate as a fallback."""

    def __init__(self, exchange: VendorExchange, api: TokenCountApi, preview: BodyPreview) -> None:
        self._exchange = exchange
        self._api = api
        self._preview = preview

    async def count(self, request: CompletionRequest, *, timeout_s: float) -> TokenCount:
        """Lets the vendor count the tokens of messages and tools. Makes one request, which costs no tokens.

        Raises:
            InvalidArgumentsError: the model does not support the request.
            CallError: the vendor failed.
        """
        body = self._preview(request)
        counted: Body = {key: body[key] for key in ("model", "messages", "tools") if key in body}
        api_request = ApiRequest(method="POST", path=self._api.path, body=counted)
        return await self._exchange.ask(api_request, self._read, timeout_s=timeout_s)

    def estimate(self, request: CompletionRequest) -> TokenCount:
        """Estimates the tokens. Sends nothing.

        Raises:
            InvalidArgumentsError: the model does not support the request.
        """
        return TokenCount(estimate_body(self._preview(request)), "estimate", ESTIMATE_ERROR)

    def _read(self, document: Any) -> TokenCount:
        tokens = self._api.read(document)
        return TokenCount(tokens, "vendor", simulated=document.get(SIMULATED) is True)


def count_at(*path: str) -> Callable[[Any], int]:
    """Returns a reader of the number at this path of keys."""

    def read(document: Any) -> int:
        value = document
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InvalidResponseError(f"{'.'.join(path)} is not a number")
        return value

    return read
