"""Failures of a vendor, on every transport, plain and streamed: each has its error."""

import socket
from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import (
    CallError,
    ContextLengthExceededError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from toold.providers import CompletionRequest, Message

if TYPE_CHECKING:
    from tests.providers.conftest import Asker, Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


# Directive → the resulting error: class, executed, transient, and a part of the message.
FAILURES: list[tuple[str, type[CallError], str, bool, str]] = [
    ("status=401", ProviderError, "no", False, "rejected the API key; check "),
    ("status=403", ProviderError, "no", False, "HTTP 403"),
    ("status=400", ProviderError, "no", False, "HTTP 400"),
    ("status=429", RateLimitedError, "no", True, "rate limit exceeded"),
    ("status=429 code=exceeded_current_quota_error", RateLimitedError, "no", False, "top it up"),
    ("status=429 code=1113", RateLimitedError, "no", False, "top it up"),
    ("status=500", ServiceUnavailableError, "maybe", True, "HTTP 500"),
    ("status=503", ServiceUnavailableError, "maybe", True, "HTTP 503"),
    ("too_long", ContextLengthExceededError, "no", False, "larger window"),
    ("filter", ProviderError, "no", False, "unsafe"),
    ("withhold", ProviderError, "yes", False, "withheld its answer"),
    ("garbage", ProviderError, "maybe", False, "not JSON"),
    ("nested", ProviderError, "maybe", False, "not JSON: it is nested too deeply"),
]


@pytest.mark.parametrize(
    ("directives", "error", "executed", "transient", "words"), FAILURES, ids=[f[0] for f in FAILURES]
)
async def test_each_failure_has_its_own_error(
    asker: "Asker", directives: str, error: type[CallError], executed: str, transient: bool, words: str
) -> None:
    """Every vendor failure becomes one error that names the cause and the remedy. The request is not retried."""
    before = len(asker.bench.simulator.log)
    with pytest.raises(error) as caught:
        await asker.ask(f"Hello. [[sim:{directives}]]")
    assert type(caught.value) is error
    assert caught.value.executed == executed
    assert caught.value.transient is transient
    assert words in caught.value.message
    assert len(asker.bench.simulator.log) == min(before + 1, 200)


async def test_rate_limit_error_has_retry_after(asker: "Asker") -> None:
    """``Retry-After`` becomes ``retry_after_ms``."""
    with pytest.raises(RateLimitedError) as caught:
        await asker.ask("[[sim:status=429 retry_after=2.5]]")
    assert caught.value.retry_after_ms == 2500


async def test_response_without_choices_is_an_error(asker: "Asker") -> None:
    """JSON without choices raises an error and never produces an empty answer."""
    with pytest.raises((ProviderError, ServiceUnavailableError)) as caught:
        await asker.ask("[[sim:empty]]")
    assert caught.value.executed == "maybe"


async def test_interrupted_stream_is_an_error(streamer: "Asker") -> None:
    """A stream that ends early raises an error instead of returning a shorter answer."""
    with pytest.raises(ServiceUnavailableError) as caught:
        await streamer.ask("[[sim:break_after=4]]")
    assert caught.value.executed == "maybe"
    assert streamer.deltas


async def test_error_within_a_stream_is_mapped_by_its_code(streamer: "Asker") -> None:
    """An error in the middle of a stream is mapped by its code. The vendor may have executed the request."""
    code = "content_filter" if streamer.vendor == "kimi" else "1301"
    with pytest.raises(ProviderError, match="unsafe") as caught:
        await streamer.ask(f"[[sim:error_after=4 code={code}]]")
    assert caught.value.executed == "maybe"
    with pytest.raises(ServiceUnavailableError, match="interrupted its answer with an error"):
        await streamer.ask("[[sim:error_after=4]]")


async def test_wrong_key_error_names_the_setting_and_hides_the_key(bench: "Bench", route: tuple[str, str]) -> None:
    """The message names the setting to check. Neither the message nor any repr contains the key."""
    provider = bench.open(*route, key="wrong-0123456789abcdef.secret")
    with pytest.raises(ProviderError) as caught:
        await provider.complete(CompletionRequest(bench.model(route[0]), (Message("user", "Hi."),)), timeout_s=30)
    assert f"check {route[0].upper()}_API_KEY" in caught.value.message
    assert "0123456789abcdef" not in f"{caught.value!r} {provider!r} {vars(provider)}"


async def test_unreachable_vendor_executed_nothing(bench: "Bench", route: tuple[str, str]) -> None:
    """A refused connection raises SERVICE_UNAVAILABLE with executed ``no``."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    provider = bench.open(*route, base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ServiceUnavailableError) as caught:
        await provider.complete(CompletionRequest(bench.model(route[0]), (Message("user", "Hi."),)), timeout_s=30)
    assert caught.value.executed == "no"
    assert "cannot be reached" in caught.value.message
