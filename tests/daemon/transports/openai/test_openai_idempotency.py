"""Requests with an ``Idempotency-Key`` over OpenAI's API: a repeat finds its own call, and only its own."""

import asyncio
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from tests.waiting import until
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.lifecycle import running
from toold.protocol.tool_call import LOCAL, Principal

from .openai_client import MODEL, Connect, question


async def test_a_repeated_key_gets_the_same_answer(daemon: Daemon, client: AsyncOpenAI) -> None:
    """The tool runs once; the repeat gets the stored answer, also streamed; another request with the key is refused."""
    key = {"Idempotency-Key": "order-7"}
    ask: Any = client.chat.completions.create
    first = await ask(model=MODEL, messages=question("Say a number."), extra_headers=key)
    repeat = await ask(model=MODEL, messages=question("Say a number."), extra_headers=key)
    assert (repeat.id, repeat.choices[0].message.content) == (first.id, first.choices[0].message.content)
    assert repeat.model_extra["toold"]["replayed"] is True
    streamed = await ask(model=MODEL, messages=question("Say a number."), extra_headers=key, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in streamed])
    assert text == first.choices[0].message.content
    assert len(await daemon.view.ended(LOCAL, 10)) == 1
    with pytest.raises(openai.ConflictError):
        await ask(model=MODEL, messages=question("Say a letter."), extra_headers=key)


async def test_a_key_finds_its_call_after_a_disconnect(daemon: Daemon, client: AsyncOpenAI) -> None:
    """With a key the call continues without its client; a repeat joins it, and gets the whole text."""
    key = {"Idempotency-Key": "long"}
    messages = question("[[sim:stream_delay=0.05]] Count to ten, slowly.")
    ask: Any = client.chat.completions.create
    chunks = await ask(model=MODEL, messages=messages, stream=True, extra_headers=key)
    begun = (await anext(aiter(chunks))).choices[0].delta.reasoning_content
    await chunks.close()
    answer = await ask(model=MODEL, messages=messages, extra_headers=key)
    assert answer.choices[0].message.reasoning_content.startswith(begun)
    assert len(await daemon.view.ended(LOCAL, 10)) == 1


@pytest.mark.parametrize("other", ["Another question.", "long " * 10_000], ids=["short", "long"])
async def test_a_conflicting_request_takes_no_call_over(daemon: Daemon, client: AsyncOpenAI, other: str) -> None:
    """It alone gets 409; the client that waits for the key's call gets the answer of that."""
    key = {"Idempotency-Key": "shared"}
    ask: Any = client.chat.completions.create
    first = asyncio.create_task(ask(model=MODEL, messages=question("[[sim:hang]]"), extra_headers=key))
    await until(lambda: daemon.router.accepted)
    with pytest.raises(openai.ConflictError):
        await ask(model=MODEL, messages=question(other), extra_headers=key)
    assert await daemon.router.cancel_by_operator(next(iter(daemon.router.calls)).id)
    with pytest.raises(openai.InternalServerError, match="operator"):
        await first


async def test_a_repeated_key_gets_the_same_answer_after_a_restart(settings_with: Any) -> None:
    """A new process has the answer, and asks no model; another request with the key is refused there too."""
    settings = settings_with(TOOLD_SIMULATE="true", GLM_SDK="http", KIMI_SDK="http")
    body: dict[str, Any] = {"model": MODEL, "messages": question("Say a number.")}
    answers = []
    for _ in range(2):
        async with running(settings) as daemon, httpx.AsyncClient(trust_env=False, timeout=60, verify=False) as http:
            token = (settings.state_dir / "token").read_text().strip()
            headers = {"authorization": f"Bearer {token}", "idempotency-key": "order-8"}
            url = f"http://127.0.0.1:{daemon.http.port}/v1/chat/completions"
            answers.append((await http.post(url, json=body, headers=headers)).json())
            conflict = await http.post(url, json={**body, "temperature": 0}, headers=headers)
            assert conflict.status_code == 409
            assert len([row for row in await daemon.view.ended(LOCAL, 10) if row["outcome"] == "ok"]) == 1
    first, repeat = answers
    assert repeat["toold"].pop("replayed") is True
    assert "created" in repeat
    assert {**repeat, "created": first["created"]} == first


async def test_principals_share_nothing(daemon: Daemon, connect: Connect) -> None:
    """A key of one token is unknown to another, and each sees its own calls only; a toolset can exclude the tool."""
    created: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        for name, toolsets in (("ann", ("standard",)), ("ben", ("standard",)), ("cas", ("lean",))):
            book, token = book.with_new(name, 1.0, toolsets=toolsets)
            created.append(token)
        return book

    change_tokens(daemon.settings.state_dir, add)
    await until(lambda: len(daemon.tokens.book.tokens) == 3)
    ann, ben, cas = map(connect, created)
    key = {"Idempotency-Key": "the-same"}
    for client, text in ((ann, "Ann asks."), (ben, "Ben asks.")):
        raw = await client.chat.completions.with_raw_response.create(
            model=MODEL, messages=question(text), extra_headers=key
        )
        answer: Any = raw.parse()
        assert text in answer.choices[0].message.content
        assert "replayed" not in answer.model_extra["toold"]
    for name in ("ann", "ben"):
        assert len(await daemon.view.ended(Principal(f"token:{name}"), 10)) == 1
    with pytest.raises(openai.PermissionDeniedError, match="toolset"):
        await cas.chat.completions.create(model=MODEL, messages=question("Cas asks."))
