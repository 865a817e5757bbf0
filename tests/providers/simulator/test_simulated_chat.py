"""The simulator's HTTP interface."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from toold.providers.simulator import SIMULATOR_KEY, Simulator

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK = {"model": "kimi-plain", "messages": [{"role": "user", "content": "Hello."}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {SIMULATOR_KEY}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30, verify=False) as client:
        yield client


def chat(simulator: Simulator) -> str:
    return f"{simulator.kimi_base_url}/chat/completions"


def saying(prompt: str, **fields: Any) -> dict[str, Any]:
    return {**ASK, "messages": [{"role": "user", "content": prompt}], **fields}


async def test_identical_requests_get_identical_responses(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """The responses are equal byte for byte, including id and time."""
    first = await http.post(chat(simulator), json=ASK)
    second = await http.post(chat(simulator), json=ASK)
    assert first.status_code == 200
    assert first.content == second.content


async def test_a_stream_ends_with_done(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """The stream consists of server-sent events with JSON, and ends with ``[DONE]``."""
    response = await http.post(chat(simulator), json={**ASK, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    *chunks, done, rest = response.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    assert all(json.loads(chunk.removeprefix("data: "))["model"] == "kimi-plain" for chunk in chunks)


@pytest.mark.parametrize("path", ["chat/completions", "models"])
@pytest.mark.parametrize("authorization", [None, "Bearer sk-real-key", "Basic sim-key", "sim-key"])
async def test_only_simulator_keys_are_accepted(
    simulator: Simulator, http: httpx.AsyncClient, path: str, authorization: str | None
) -> None:
    """A real key, or no key, gets the vendor's 401, so that a key sent by mistake is noticed."""
    headers = {"authorization": authorization} if authorization else {}
    request = http.build_request("POST" if "chat" in path else "GET", f"{simulator.glm_base_url}/{path}", json=ASK)
    del request.headers["authorization"]
    request.headers.update(headers)
    response = await http.send(request)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "1002"


async def test_models_are_listed_by_vendor(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """Each vendor lists only its own models."""
    kimi = (await http.get(f"{simulator.kimi_base_url}/models")).json()["data"]
    glm = (await http.get(f"{simulator.glm_base_url}/models")).json()["data"]
    assert [model["id"] for model in kimi] == ["kimi-plain", "kimi-full", "kimi-deep", "kimi-hasty"]
    assert [model["id"] for model in glm] == ["glm-plain", "glm-full", "glm-deep", "glm-vectors", "glm-hasty"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'{"messages": 1}', b'{"messages": ["a"]}', b"{}"])
async def test_malformed_requests_are_refused(simulator: Simulator, http: httpx.AsyncClient, body: bytes) -> None:
    """Malformed bodies get the vendor's 400."""
    response = await http.post(chat(simulator), content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("model", ["glm-plain", "gpt-4", None])
async def test_unknown_model_is_refused(simulator: Simulator, http: httpx.AsyncClient, model: Any) -> None:
    """A missing model, an unknown one and one of the other vendor get 404."""
    response = await http.post(chat(simulator), json={**ASK, "model": model})
    assert response.status_code == 404
    assert "resource_not_found_error" in response.text


async def test_invalid_directive_is_refused(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """The response lists the known directives."""
    response = await http.post(chat(simulator), json=saying("[[sim:explode]]"))
    assert response.status_code == 400
    assert "known: status, code" in response.json()["error"]["message"]


async def test_requests_are_logged_without_keys(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """The bounded log contains vendor, body and headers, but no keys."""
    await http.post(chat(simulator), json=saying("Remember me."))
    seen = simulator.log[-1]
    assert seen.vendor == "kimi"
    assert seen.body["messages"][0]["content"] == "Remember me."
    assert SIMULATOR_KEY not in str(seen.headers)
    assert len(simulator.log) <= 200


async def test_running_requests_are_counted(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """A hung request counts until its client disconnects. The peak is kept."""
    async with asyncio.timeout(30):
        async with http.stream("POST", chat(simulator), json=saying("[[sim:hang_after=1]]", stream=True)):
            await simulator.until_in_flight("kimi", 1)
            assert simulator.in_flight("glm") == 0
        await simulator.until_in_flight("kimi", 0)
    assert simulator.peak("kimi") >= 1
