"""Token counts: the vendor's, or our own."""

from typing import Any

import pytest
from toold.providers import ESTIMATE_ERROR, CompletionRequest, Message, ModelCatalog, TokenCount, TokenCounter
from toold.providers.completion_parsing import NotUnderstoodError
from toold.providers.token_count import TokenCountApi, count_at
from toold.providers.token_estimate import estimate_body
from toold.providers.vendor_transport import ApiRequest


def test_the_number_is_found_where_it_stands() -> None:
    """Key below key."""
    assert count_at("data", "total_tokens")({"data": {"total_tokens": 80}}) == 80


@pytest.mark.parametrize(
    "document", [None, [], {}, {"data": 1}, {"data": {"total_tokens": "80"}}, {"data": {"total_tokens": True}}]
)
def test_what_is_no_number_is_not_understood(document: Any) -> None:
    """The error names the place."""
    with pytest.raises(NotUnderstoodError, match=r"data\.total_tokens"):
        count_at("data", "total_tokens")(document)


class Counter:
    """An exchange whose vendor counts to 80; notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[ApiRequest] = []

    async def ask(self, request: ApiRequest, read: Any, *, timeout_s: float) -> Any:
        self.asked.append(request)
        return read({"data": {"total_tokens": 80}})


BODY = {"model": "m", "messages": [{"role": "user", "content": "one two"}], "tools": [{"type": "f"}], "stream": False}
ASKED = CompletionRequest(ModelCatalog.load().default("kimi"), (Message("user", "one two"),))


async def test_what_takes_room_is_counted_in_one_request() -> None:
    """Messages and tools for the model; how to answer is no matter."""
    exchange: Any = Counter()
    tokens = TokenCounter(exchange, TokenCountApi("/count", count_at("data", "total_tokens")), lambda *_, **__: BODY)
    assert await tokens.count(ASKED, timeout_s=1) == TokenCount(80, "vendor")
    counted = {"model": "m", "messages": BODY["messages"], "tools": BODY["tools"]}
    assert exchange.asked == [ApiRequest(method="POST", path="/count", body=counted)]


async def test_an_estimate_asks_nobody_and_states_its_error() -> None:
    """It is of the same messages and tools."""
    exchange: Any = Counter()
    tokens = TokenCounter(exchange, TokenCountApi("/count", count_at("data", "total_tokens")), lambda *_, **__: BODY)
    assert tokens.estimate(ASKED) == TokenCount(estimate_body(BODY), "estimate", ESTIMATE_ERROR)
    assert exchange.asked == []
