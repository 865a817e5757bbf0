"""Answers of vendors that are not as documented, over both transports: a clear error or a stated fallback."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.providers.recorded_vendor import (
    SDKS,
    RecordedVendor,
    ask_recorded,
    open_recorded,
    recorded_request,
    recorded_response,
    response_head,
)
from toold.protocol.error_codes import CallError
from toold.providers import Completion, VendorProvider
from toold.providers.retry_delay import duration_ms

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGE = {"role": "assistant", "content": "Hi."}
STREAMED = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": None}]}
KEY = "sk-recorded-0123456789"


def page(status: int, body: str, media_type: str = "text/html; charset=utf-8") -> list[bytes]:
    return [response_head(status, media_type, {}), body.encode()]


def whole(finish: str | None = "stop", **fields: Any) -> list[bytes]:
    choice = {"index": 0, "message": {**MESSAGE, **fields}, "finish_reason": finish}
    return recorded_response({"body": {"choices": [choice]}})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vendor() -> AsyncIterator[RecordedVendor]:
    async with RecordedVendor() as vendor:
        yield vendor


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SDKS)
async def provider(vendor: RecordedVendor, request: pytest.FixtureRequest) -> AsyncIterator[VendorProvider]:
    provider = open_recorded("vllm", request.param, vendor.base_url)
    yield provider
    await provider.close()


async def ask(
    vendor: RecordedVendor, provider: VendorProvider, pieces: list[bytes], *, stream: bool = False
) -> Completion:
    vendor.pieces = pieces
    completion = (await ask_recorded(provider, recorded_request("vllm", "m", {}), stream=stream)).completion
    assert isinstance(completion, Completion)
    return completion


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(
    ("pieces", "code", "says", "executed"),
    [
        (
            page(200, "<html><title>Sign in</title>"),
            "PROVIDER_ERROR",
            "a web page, not JSON; check its base URL",
            "maybe",
        ),
        (page(404, "<html><title>Not here</title>" + "x" * 9_000), "PROVIDER_ERROR", "titled 'Not here'", "no"),
        (page(502, "<h1>Bad gateway</h1>"), "SERVICE_UNAVAILABLE", "Bad gateway", "maybe"),
        (page(302, "", "text/plain"), "PROVIDER_ERROR", "redirects to another address", "no"),
        (recorded_response({"body": []}), "PROVIDER_ERROR", "the response is not an object", "maybe"),
        (recorded_response({"body": {"error": "it broke"}}), "PROVIDER_ERROR", "it broke", "maybe"),
        (page(200, '{"choices"', "application/json"), "PROVIDER_ERROR", "not JSON", "maybe"),
    ],
    ids=["page", "page-404", "page-502", "redirect", "list", "error", "cut"],
)
async def test_an_answer_of_another_kind_is_a_clear_error(
    vendor: RecordedVendor,
    provider: VendorProvider,
    pieces: list[bytes],
    code: str,
    says: str,
    executed: str,
    stream: bool,
) -> None:
    """The error says what came instead, and whether the vendor may have done the work."""
    with pytest.raises(CallError) as error:
        await ask(vendor, provider, pieces, stream=stream)
    assert error.value.code == code
    assert says in error.value.message
    assert error.value.executed == executed
    assert len(error.value.message) < 700


async def test_an_answer_without_choices_or_finish_reason_is_an_error(
    vendor: RecordedVendor, provider: VendorProvider
) -> None:
    """Of an empty list of choices, and of an answer or a stream that ends without a finish reason."""
    for pieces, stream, says in (
        (recorded_response({"body": {"choices": []}}), False, "the choices are missing"),
        (whole(None), False, "before the end"),
        (recorded_response({"events": [STREAMED, "[DONE]"]}), True, "before the end"),
        (recorded_response({"events": [STREAMED]}), True, "before the end"),
        (recorded_response({"events": []}), True, "before the end"),
        ([*recorded_response({"events": [STREAMED]}), b'data: {"choices": [{"delta"'], True, "before the end"),
    ):
        with pytest.raises(CallError, match=says) as error:
            await ask(vendor, provider, pieces, stream=stream)
        assert error.value.executed == "maybe"


async def test_a_server_that_cannot_stream_answers_all_the_same(
    vendor: RecordedVendor, provider: VendorProvider
) -> None:
    """A whole answer to a request for a stream is one piece of text."""
    completion = await ask(vendor, provider, whole(), stream=True)
    assert completion.text == "Hi."
    assert completion.usage is None


async def test_a_tool_call_in_another_form_is_not_lost(vendor: RecordedVendor, provider: VendorProvider) -> None:
    """Arguments that are not JSON stay as the model wrote them; an object becomes JSON; missing ids and arguments are
    replaced.
    """
    calls = [
        {"id": "a", "function": {"name": "weather", "arguments": "city = Oslo"}},
        {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
        {"id": "", "function": {"name": "weather"}},
    ]
    completion = await ask(vendor, provider, whole(content=None, tool_calls=calls))
    assert completion.finish_reason == "tool_calls"
    assert [(call.id, call.arguments) for call in completion.tool_calls] == [
        ("a", "city = Oslo"),
        ("call_1", '{"city": "Oslo"}'),
        ("call_2", "{}"),
    ]


@pytest.mark.parametrize("size", [1, 7])
async def test_a_stream_arrives_in_small_packets(vendor: RecordedVendor, provider: VendorProvider, size: int) -> None:
    """Text outside ASCII, separators of Unicode, and line ends are cut anywhere."""
    text = "Grüße \u2028\u0085 你好 😀"
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    head, *events = recorded_response({"events": [chunk, "[DONE]"]})
    body = b"".join(events).replace(b"\n", b"\r\n")
    pieces = [head, *(body[at : at + size] for at in range(0, len(body), size))]
    assert (await ask(vendor, provider, pieces, stream=True)).text == text


async def test_no_error_shows_the_key(vendor: RecordedVendor, provider: VendorProvider) -> None:
    """Also if the vendor repeats it in any place of its answer."""
    for case in (
        {"status": 401, "body": {"error": {"message": f"Wrong key {KEY}.", "code": KEY}}},
        {"status": 500, "body": {"error": {"message": "x", "metadata": {"raw": KEY, "provider_name": KEY}}}},
        {"status": 422, "body": {"detail": [{"loc": ["header", KEY], "msg": KEY}]}},
        {"body": {"error": KEY}},
    ):
        with pytest.raises(CallError) as error:
            await ask(vendor, provider, recorded_response(case))
        assert KEY not in f"{error.value!r} {error.value.message} {error.value.summary} {error.value.details}"
    with pytest.raises(CallError) as error:
        await ask(vendor, provider, page(404, f"<title>{KEY}</title>"))
    assert KEY not in error.value.message


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1s", 1000), ("6m0s", 360_000), ("120ms", 120), ("2m59.56s", 179_560), ("1h30m0s", 5_400_000), ("", None),
     ("5", None), ("soon", None), ("1s1h", None), ("9" * 40 + "s", None)],
)  # fmt: skip
async def test_durations_of_rate_limits_are_read(text: str, milliseconds: int | None) -> None:
    """Hours to milliseconds; anything else is ignored."""
    assert duration_ms(text) == milliseconds
