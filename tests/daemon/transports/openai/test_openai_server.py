"""OpenAI's API on the HTTP port, used with the ``openai`` SDK over real HTTP, with simulated vendors."""

import asyncio
import json
from collections import Counter
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from tests.waiting import until
from toold.daemon.app import Daemon
from toold.protocol.tool_call import LOCAL
from toold.providers import PRESETS
from toold.providers.simulator import Simulator
from toold.testing import daemon_under_test

from .openai_client import MODEL, ConnectTo, question

WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


async def test_a_whole_completion(client: AsyncOpenAI) -> None:
    """The answer has the vendor's text and usage, and is marked as simulated."""
    answer = await client.chat.completions.create(model=MODEL, messages=question("[[sim:say=Hello.]]"))
    assert answer.choices[0].message.content == "Simulated: Hello."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.model_extra is not None
    assert answer.model_extra["toold"]["simulated"] is True


async def test_a_streamed_completion(client: AsyncOpenAI) -> None:
    """The text arrives in pieces, then the finish reason, then the usage if it was requested."""
    stream = await client.chat.completions.create(
        model=MODEL, messages=question("Count to ten."), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text.startswith("Simulated answer from glm-4.6")
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1] if chunk.choices[0].finish_reason] == ["stop"]
    assert chunks[-1].usage is not None
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_function_calls_go_back_and_forth(client: AsyncOpenAI, stream: bool) -> None:
    """The model calls the caller's function; the SDK's own message and the result continue the conversation."""
    messages = question('[[sim:tool=weather args={"city": "Oslo"}]]')
    if stream:
        async with client.chat.completions.stream(model=MODEL, messages=messages, tools=[WEATHER]) as events:
            message: Any = (await events.get_final_completion()).choices[0].message
    else:
        answer = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER], parallel_tool_calls=True, tool_choice="auto"
        )
        assert answer.choices[0].finish_reason == "tool_calls"
        message = answer.choices[0].message
    assert message.tool_calls is not None
    call: Any = message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Oslo"})
    result = {"role": "tool", "tool_call_id": call.id, "content": "8 degrees"}
    more = [*messages, message.to_dict(), result, *question("[[sim:say=Cold.]]")]
    last = await client.chat.completions.create(model=MODEL, messages=more, tools=[WEATHER])
    assert last.choices[0].message.content == "Simulated: Cold."


async def test_reasoning_and_calls_stream_in_each_dialect(run_with: Any, connect_to: ConnectTo) -> None:
    """Whatever a vendor calls them, reasoning arrives in pieces, then the calls, and all are as in a whole answer."""
    tables = {f"TOOLD_PROVIDERS__{preset.upper()}__TYPE": preset for preset in PRESETS}
    client = connect_to(await run_with(**tables))
    messages = question('[[sim:stream_delay=0.005 tool=weather args={"city": "Oslo"}]]')
    parts: Counter[str] = Counter()
    for model in (MODEL, "kimi-k2.6", *(f"{preset}/any" for preset in PRESETS)):
        thinking: Any = {"extra_body": {"thinking": True}}
        asked: Any = {"model": model, "messages": messages, "tools": [WEATHER], **thinking}
        state: Any = ChatCompletionStreamState()
        order: list[str] = []
        async for chunk in await client.chat.completions.create(stream=True, **asked):
            state.handle_chunk(chunk)
            delta = chunk.choices[0].delta.to_dict()
            order += [part for part in ("reasoning_content", "tool_calls") if delta.get(part)]
        whole = (await client.chat.completions.create(**asked)).choices[0].message.to_dict()
        streamed = state.get_final_completion().choices[0].message.to_dict()
        assert streamed.get("reasoning_content") == whole.get("reasoning_content"), model
        thinks = model not in {"openai/any", "anthropic/any", "gemini/any"}
        assert bool(whole.get("reasoning_content")) is thinks, model
        assert order == sorted(order), model
        parts.update(order)
        for calls in (streamed["tool_calls"], whole["tool_calls"]):
            assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
                ("weather", '{"city": "Oslo"}')
            ], model
    # A part that the client has not read is joined with the next one, but not all of them.
    assert parts["reasoning_content"] > 3 * len(PRESETS)
    assert parts["tool_calls"] > len(PRESETS) + 2


async def test_the_call_is_in_the_audit(daemon: Daemon, client: AsyncOpenAI) -> None:
    """The call has the id that the response names, the tool, the client, and the vendor's tokens."""
    raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=question("Hello."))
    ended = await daemon.view.ended(LOCAL, 1)
    assert ended[0]["id"] == raw.headers["x-request-id"]
    assert (ended[0]["tool"], ended[0]["transport"]) == ("complete", "openai")
    assert ended[0]["client"].startswith("AsyncOpenAI/Python")


async def test_models(client: AsyncOpenAI) -> None:
    """The list has the usable models; one is found by its alias or full name, and an unknown one is a 404."""
    ids = [model.id async for model in client.models.list()]
    assert MODEL in ids
    assert (await client.models.retrieve("glm/glm-4.6")).id == MODEL
    with pytest.raises(openai.NotFoundError, match="did you mean"):
        await client.models.retrieve("glm-4.66")


BAD: dict[str, tuple[bytes, int, str, str]] = {
    "not JSON": (b'{"model": ', 400, "invalid_json", "not JSON"),
    "a list": (b"[1]", 400, "invalid_value", "JSON object"),
    "no model": (b'{"messages": [{"role": "user", "content": "?"}]}', 400, "invalid_value", "GET /v1/models"),
    "unknown model": (
        b'{"model": "glm-4.66", "messages": [{"role": "user", "content": "?"}]}', 404, "model_not_found", "did you mean"
    ),
    "no messages": (b'{"model": "glm-4.6", "messages": []}', 400, "invalid_value", "messages"),
    "a text as messages": (b'{"model": "glm-4.6", "messages": "Why?"}', 400, "invalid_value", "messages"),
    "several answers": (
        b'{"model": "glm-4.6", "messages": [{"role": "user", "content": "?"}], "n": 2}',
        400, "unsupported_value", "n must",
    ),
    "unknown field": (
        b'{"model": "glm-4.6", "messages": [{"role": "user", "content": "?"}], "temprature": 1}',
        400, "invalid_value", "did you mean 'temperature'",
    ),
    "obsolete field": (
        b'{"model": "glm-4.6", "messages": [{"role": "user", "content": "?"}], "functions": [{"name": "f"}]}',
        400, "unsupported_parameter", "use tools",
    ),
    "wrong type": (
        b'{"model": "glm-4.6", "messages": [{"role": "user", "content": "?"}], "temperature": "hot"}',
        400, "invalid_value", "temperature",
    ),
    "orphan result": (
        b'{"model": "glm-4.6", "messages": [{"role": "tool", "tool_call_id": "x", "content": "1"}]}',
        400, "invalid_value", "messages.0",
    ),
    "two limits": (
        b'{"model": "glm-4.6", "messages": [], "max_tokens": 1, "max_completion_tokens": 2}',
        400, "invalid_value", "differ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
async def test_bad_input_is_named(client: AsyncOpenAI, case: str) -> None:
    """The error is in OpenAI's form: the status, a code, and what was wrong; nothing was done."""
    body, status, code, says = BAD[case]
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        answer = await http.post(
            f"{client.base_url}chat/completions",
            content=body,
            headers={"authorization": f"Bearer {client.api_key}", "content-type": "application/json"},
        )
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], answer.headers["x-should-retry"]) == (status, code, "false"), error
    assert says in error["message"]
    assert error["executed"] == "no"


async def test_limits_and_routes(daemon: Daemon, client: AsyncOpenAI) -> None:
    """A missing token, a wrong path or method, another content type and a body that is too large are refused."""
    base, key = str(client.base_url), {"authorization": f"Bearer {client.api_key}"}
    large = b'{"model": "' + b"x" * daemon.settings.max_frame_bytes + b'"}'
    json_type = {"content-type": "application/json"}
    async with httpx.AsyncClient(trust_env=False, timeout=60, verify=False) as http:
        asked = [
            (await http.post(f"{base}chat/completions", json={}), 401, "invalid_api_key"),
            (await http.post(f"{base}chat/completion", json={}, headers=key), 404, "invalid_request"),
            (responses := await http.post(f"{base}responses", json={}, headers=key), 404, "invalid_request"),
            (await http.get(f"{base}chat/completions", headers=key), 405, "invalid_request"),
            (await http.post(f"{base}chat/completions", content=b"{}", headers=key), 415, "invalid_request"),
            (
                await http.post(f"{base}chat/completions", content=large, headers=key | json_type),
                413,
                "request_too_large",
            ),
            (
                await http.post(f"{base}chat/completions", json={}, headers=key | {"origin": "http://evil.example"}),
                403,
                "permission_denied",
            ),
        ]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer, *_ in asked] == [
        (status, code) for _, status, code in asked
    ]
    assert "use /v1/chat/completions" in responses.json()["error"]["message"]
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").models.list()


@pytest.mark.parametrize(
    ("directive", "error", "says"),
    [
        ("status=429 retry_after=7", openai.RateLimitError, "rate limit"),
        ("status=503", openai.InternalServerError, "HTTP 503"),
        ("too_long", openai.BadRequestError, "too long for the model"),
        ("status=400", openai.BadRequestError, "rejected the request"),
        ("garbage", openai.InternalServerError, "invalid response"),
    ],
)
async def test_the_vendors_errors_have_their_status(
    client: AsyncOpenAI, directive: str, error: type[openai.APIStatusError], says: str
) -> None:
    """The SDK raises the class that it raises for OpenAI's own errors."""
    with pytest.raises(error, match=says) as failure:
        await client.chat.completions.create(model=MODEL, messages=question(f"[[sim:{directive}]]"))
    if "retry_after" in directive:
        assert failure.value.response.headers["retry-after"] == "7"


async def test_a_stream_that_the_vendor_cuts_ends_with_an_error(client: AsyncOpenAI) -> None:
    """The text that arrived is delivered; then the SDK raises, and there was no finish reason."""
    chunks: list[Any] = []
    stream = await client.chat.completions.create(
        model=MODEL,
        messages=question("[[sim:break_after=3]] Count to ten."),
        stream=True,
        reasoning_effort="none",
    )

    async def read() -> None:
        async for chunk in stream:
            chunks.append(chunk)  # noqa: PERF401 - the chunks before the error are needed

    with pytest.raises(openai.APIError, match="broke"):
        await read()
    assert chunks
    assert all(chunk.choices[0].finish_reason is None for chunk in chunks)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_disconnects_cancels(daemon: Daemon, client: AsyncOpenAI, stream: bool) -> None:
    """The call ends, and the audit says why."""
    asking: Any = client.chat.completions.create(
        model=MODEL,
        messages=question("[[sim:hang_after=3]] Count." if stream else "[[sim:hang]]"),
        stream=stream,
        reasoning_effort="none",
    )
    if stream:
        chunks = await asking
        await anext(aiter(chunks))
        await chunks.close()
    else:
        task = asyncio.create_task(asking)
        await until(lambda: daemon.router.accepted)
        task.cancel()
    await until(lambda: daemon.router.accepted == 0)
    assert (await daemon.view.ended(LOCAL, 1))[0]["outcome"] == "CANCELLED"


async def test_a_configured_vendor_gets_the_fields() -> None:
    """A model that is not in the catalog gets them as OpenAI does, also a temperature above 1."""
    async with Simulator(providers=("acme",)) as vendor:
        table = {"BASE_URL": vendor.base_url("acme"), "API_KEY": "sim-key", "SDK": "http"}
        env = {f"TOOLD_PROVIDERS__ACME__{name}": value for name, value in table.items()}
        async with daemon_under_test(env=env) as served:
            sent = {"temperature": 1.7, "top_p": 0.5, "stop": ["END"], "seed": 7, "reasoning_effort": "low"}
            form = {"type": "json_object"}
            messages = [{"role": "user", "content": "Why?"}]
            await served.client.call(
                "complete", {"model": "acme/small-model", "messages": messages, **sent, "response_format": form}
            )
            body = vendor.log[-1].body
            assert {name: body[name] for name in sent} == sent
            assert body["response_format"] == form
