"""Token counts: the vendor's count and the local estimate."""

from typing import Any

import pytest
from toold.providers import ESTIMATE_ERROR, CompletionRequest, Message, ModelCatalog, TokenCount, TokenCounter
from toold.providers.response_values import InvalidResponseError
from toold.providers.token_count import TokenCountApi, count_at
from toold.providers.token_estimate import estimate_body
from toold.providers.vendor_transport import ApiRequest


def test_number_is_read_from_nested_keys() -> None:
    """The number is read from a path of keys."""
    assert count_at("data", "total_tokens")({"data": {"total_tokens": 80}}) == 80


@pytest.mark.parametrize(
    "document", [None, [], {}, {"data": 1}, {"data": {"total_tokens": "80"}}, {"data": {"total_tokens": True}}]
)
def test_missing_number_is_refused(document: Any) -> None:
    """The error names the path of keys."""
    with pytest.raises(InvalidResponseError, match=r"data\.total_tokens"):
        count_at("data", "total_tokens")(document)


class Counter:
    """An exchange whose vendor always counts 80 tokens, and which records the requests."""

    def __init__(self) -> None:
        self.requests: list[ApiRequest] = []

    async def ask(self, request: ApiRequest, read: Any, *, timeout_s: float) -> Any:
        self.requests.append(request)
        return read({"data": {"total_tokens": 80}})


BODY = {"model": "m", "messages": [{"role": "user", "content": "one two"}], "tools": [{"type": "f"}], "stream": False}
ASKED = CompletionRequest(ModelCatalog.load().default("kimi"), (Message("user", "one two"),))


async def test_messages_and_tools_are_counted_in_one_request() -> None:
    """Messages and tools are sent for counting. Other fields are omitted."""
    exchange: Any = Counter()
    tokens = TokenCounter(exchange, TokenCountApi("/count", count_at("data", "total_tokens")), lambda *_, **__: BODY)
    assert await tokens.count(ASKED, timeout_s=1) == TokenCount(80, "vendor")
    counted = {"model": "m", "messages": BODY["messages"], "tools": BODY["tools"]}
    assert exchange.requests == [ApiRequest(method="POST", path="/count", body=counted)]


async def test_estimate_sends_no_request_and_states_its_error() -> None:
    """The estimate covers the same body and sends no request."""
    exchange: Any = Counter()
    tokens = TokenCounter(exchange, TokenCountApi("/count", count_at("data", "total_tokens")), lambda *_, **__: BODY)
    assert tokens.estimate(ASKED) == TokenCount(estimate_body(BODY), "estimate", ESTIMATE_ERROR)
    assert exchange.requests == []
