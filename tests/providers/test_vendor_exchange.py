"""Requests other than completions keep the same contract over every vendor transport: errors, deadlines, cancelling."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from toold.providers import CompletionRequest, Message, SearchQuery, VendorProvider

if TYPE_CHECKING:
    from tests.providers.conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

Ask = Callable[..., Awaitable[Any]]


def requests_of(provider: VendorProvider, bench: "Bench") -> dict[str, tuple[Any, Ask]]:
    """Every request other than completions that this provider makes: its name in the simulator, and a function that
    sends it.
    """
    assert provider.files is not None
    assert provider.tokens is not None
    files, tokens = provider.files, provider.tokens
    purpose, name = ("file-extract", "a.txt") if provider.name == "kimi" else ("batch", "a.jsonl")
    counted = CompletionRequest(bench.model(provider.name), (Message("user", "Hi."),))

    def upload(*, timeout_s: float) -> Awaitable[Any]:
        return files.upload(name, b"words", purpose, timeout_s=timeout_s)

    def content(*, timeout_s: float) -> Awaitable[Any]:
        return files.content("some-file", timeout_s=timeout_s)

    def delete(*, timeout_s: float) -> Awaitable[Any]:
        return files.delete("some-file", timeout_s=timeout_s)

    def count(*, timeout_s: float) -> Awaitable[Any]:
        return tokens.count(counted, timeout_s=timeout_s)

    result: dict[str, tuple[Any, Ask]] = {
        "models": ("models", provider.models.ids),
        "upload": ("files", upload),
        "list": ("files", files.list),
        "content": ("files", content),
        "delete": ("files", delete),
        "count": ("tokens", count),
    }
    if provider.search is not None:
        search = provider.search

        def find(*, timeout_s: float) -> Awaitable[Any]:
            return search.search(SearchQuery(query="news"), timeout_s=timeout_s)

        result["search"] = ("search", find)
    return result


FAILURES: list[tuple[str, type[CallError], str, bool, str]] = [
    ("status=401", ProviderError, "no", False, "rejected the API key; check "),
    ("status=400", ProviderError, "no", False, "HTTP 400"),
    ("status=429", RateLimitedError, "no", True, "rate limit exceeded"),
    ("status=429 code=1113", RateLimitedError, "no", False, "top it up"),
    ("status=500", ServiceUnavailableError, "maybe", True, "HTTP 500"),
]


@pytest.mark.parametrize(
    ("directives", "error", "executed", "transient", "words"), FAILURES, ids=[f[0] for f in FAILURES]
)
async def test_failures_are_mapped_as_for_completions(
    bench: "Bench",
    route: tuple[Any, str],
    directives: str,
    error: type[CallError],
    executed: str,
    transient: bool,
    words: str,
) -> None:
    """Every request raises the same error for the same failure, and is not retried."""
    for operation, ask in requests_of(bench.open(*route), bench).values():
        before = len([seen for seen in bench.simulator.requests if seen.operation == operation])
        bench.simulator.plan(route[0], operation, directives)
        with pytest.raises(error) as caught:
            await ask(timeout_s=30.0)
        assert type(caught.value) is error
        assert (caught.value.executed, caught.value.transient) == (executed, transient)
        assert words in caught.value.message
        after = len([seen for seen in bench.simulator.requests if seen.operation == operation])
        assert after <= before + 1


async def test_rate_limit_error_has_retry_after(bench: "Bench", route: tuple[Any, str]) -> None:
    """``Retry-After`` becomes ``retry_after_ms``."""
    for operation, ask in requests_of(bench.open(*route), bench).values():
        bench.simulator.plan(route[0], operation, "status=429 retry_after=2.5")
        with pytest.raises(RateLimitedError) as caught:
            await ask(timeout_s=30.0)
        assert caught.value.retry_after_ms == 2500


@pytest.mark.parametrize("directives", ["garbage", "nested", "empty"])
async def test_undocumented_response_is_an_error(bench: "Bench", route: tuple[Any, str], directives: str) -> None:
    """A response that is not JSON, too deep, or lacks the requested data, is an error, never an empty result."""
    for kind, (operation, ask) in requests_of(bench.open(*route), bench).items():
        if kind == "content":  # bytes are bytes
            continue
        bench.simulator.plan(route[0], operation, directives)
        with pytest.raises(ProviderError, match="invalid response") as caught:
            await ask(timeout_s=30.0)
        assert caught.value.executed == "maybe"


async def test_hung_request_ends_at_the_deadline(bench: "Bench", route: tuple[Any, str]) -> None:
    """At the deadline the request ends and its connection is closed."""
    for operation, ask in requests_of(bench.open(*route), bench).values():
        bench.simulator.plan(route[0], operation, "hang")
        with pytest.raises(CallTimeoutError, match=r"0\.1 s"):
            await ask(timeout_s=0.1)
        await bench.until_in_flight(route[0], 0)


async def test_cancelling_closes_the_connection_to_the_vendor(bench: "Bench", route: tuple[Any, str]) -> None:
    """A cancelled request also ends at the vendor."""
    for operation, ask in requests_of(bench.open(*route), bench).values():
        bench.simulator.plan(route[0], operation, "hang")
        asking = asyncio.ensure_future(ask(timeout_s=1000.0))
        await bench.until_in_flight(route[0], 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await bench.until_in_flight(route[0], 0)


async def test_failed_upload_is_not_retried(bench: "Bench", route: tuple[Any, str]) -> None:
    """A failed upload is not retried, even with enough time, because the vendor may have stored the file."""
    provider = bench.open(*route)
    assert provider.files is not None
    _, upload = requests_of(provider, bench)["upload"]
    before = await provider.files.list(timeout_s=30.0)
    bench.simulator.plan(route[0], "files", "status=500")
    with pytest.raises(ServiceUnavailableError):
        await upload(timeout_s=1000.0)
    assert await provider.files.list(timeout_s=30.0) == before


async def test_wrong_key_error_hides_the_key(bench: "Bench", route: tuple[Any, str]) -> None:
    """The error names the setting. Neither the error nor any repr contains the key."""
    provider = bench.open(*route, key="wrong-0123456789abcdef.secret")
    with pytest.raises(ProviderError) as caught:
        await provider.models.ids(timeout_s=30.0)
    assert f"check {route[0].upper()}_API_KEY" in caught.value.message
    assert "0123456789abcdef" not in f"{caught.value!r} {provider!r} {vars(provider)}"
