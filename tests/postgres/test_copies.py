"""Copies of conversations in a real Supabase: every message arrives once, and only if copying is enabled."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.waiting import until
from toold.audit import REDACTED, AuditSender, SupabaseWriter
from toold.client import MCPWebSocketClient
from toold.daemon.config.settings import Settings
from toold.daemon.lifecycle import running
from toold.store import ConversationUpdate, NewCopy, Retention, Store, StoredTurn, open_sqlite_store

DAY = 86400.0
SECRET = "sk-0123456789abcdef0123"


@pytest.fixture
async def store(tmp_path: Path, audit_key: bytes) -> AsyncIterator[Store]:
    store = open_sqlite_store(
        tmp_path / "toold.db", content=json.dumps, retention=Retention(), key=audit_key, copy_conversations=True
    )
    yield store
    await store.close()


@pytest.fixture
async def sender(
    store: Store, gateway: Any, service_key: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AuditSender]:
    """A sender that has not started, with short pauses after failures."""
    monkeypatch.setattr("toold.audit.outbox_sender.pause_s", lambda *_: 0.05)
    sender = AuditSender(store, lambda: SupabaseWriter(gateway.url, SecretStr(service_key), store.audit.chain))
    yield sender
    await sender.close(30)


async def say(store: Store, conversation_id: str, number: int, at: float | None = None, role: str = "user") -> None:
    """Add one message of a call to a conversation."""
    at = time.time() if at is None else at
    text = f"{conversation_id} says {number}"
    await store.conversations.update(
        ConversationUpdate(
            id=conversation_id,
            principal="local",
            at=at,
            state="null",
            bytes=10,
            first_number=1,
            last_number=number,
            turns=[StoredTurn(number, 5, "{}")],
            session_id="s-1",
            call_id=f"call-{number}",
            copies=[NewCopy(number=number, role=role, content={"tool": "chat", "text": text}, at=at)],
        )
    )


async def settled(store: Store, copies: int) -> None:
    """Wait until ``copies`` copies are sent or refused."""

    async def reached() -> bool:
        state = await store.conversations.outbox_state()
        return state.sent + state.refused >= copies

    await until(reached)


async def test_every_message_arrives_once(store: Store, sender: AuditSender, database: Any) -> None:
    """Each message arrives once, and its conversation has one row with the times of its messages and a title from
    the first."""
    for number in range(1, 251):
        await say(store, "c", number, at=1_800_000_000.0 + number)
    sender.start()
    await settled(store, 250)
    await say(store, "c", 251, at=1_800_000_300.25)
    await settled(store, 251)
    assert database.sql("SELECT count(*), count(DISTINCT position), max(position) FROM toold_messages") == "251|251|251"
    times = "extract(epoch FROM started_at)::float, extract(epoch FROM last_message_at)::float, ended_at"
    query = f"SELECT id, principal, session_id, title, {times} FROM toold_conversations"  # noqa: S608 - our own names
    assert database.sql(query) == "c|local|s-1|c says 1|1800000001|1800000300.25|"
    query = "SELECT conversation_id, call_id, role, content->>'text' FROM toold_messages WHERE id = 'c-251'"
    assert database.sql(query) == "c|call-251|user|c says 251"


@pytest.mark.parametrize("part", ["postgrest", "cluster"])
async def test_server_restarts_under_load_lose_no_message(
    store: Store, sender: AuditSender, database: Any, request: pytest.FixtureRequest, part: str
) -> None:
    """PostgREST or PostgreSQL stops and starts twice while messages are sent: every message arrives once, in its
    conversation."""
    server = request.getfixturevalue(part)
    sender.start()

    async def failed() -> bool:
        return bool((await sender.status())["copies"]["failures_in_a_row"])

    async def talk(numbers: range) -> None:
        for number, name in itertools.product(numbers, "abc"):
            await say(store, name, number)

    for first in (1, 201):
        await talk(range(first, first + 100))
        if first == 1:
            await settled(store, 300)  # the second stop interrupts their sending
        await asyncio.to_thread(server.stop)
        try:
            await talk(range(first + 100, first + 200))
            await until(failed)
        finally:
            await asyncio.to_thread(server.start)
    await settled(store, 1200)
    query = "SELECT count(*), count(DISTINCT id), count(DISTINCT (conversation_id, position)) FROM toold_messages"
    assert database.sql(query) == "1200|1200|1200"
    wrong = "content->>'text' != conversation_id || ' says ' || position"
    assert database.sql(f"SELECT count(*) FROM toold_messages WHERE {wrong}") == "0"  # noqa: S608 - our own words
    assert database.sql("SELECT string_agg(id, '' ORDER BY id) FROM toold_conversations") == "abc"
    status = (await sender.status())["copies"]
    assert (status["sent"], status["refused"], status["dropped"], status["backlog"]) == (1200, 0, 0, 0)


async def test_refused_message_does_not_delay_others(store: Store, sender: AuditSender, database: Any) -> None:
    """A message that a constraint rejects is counted as refused; all others arrive, including its conversation's."""
    for number in range(1, 40):
        await say(store, "c", number, role="nobody" if number == 17 else "user")
    sender.start()
    await settled(store, 39)
    assert database.sql("SELECT count(*) FROM toold_messages WHERE position != 17") == "38"
    status = (await sender.status())["copies"]
    assert (status["sent"], status["refused"], status["last_error"]) == (38, 1, None)


async def test_end_of_a_conversation_arrives(store: Store, sender: AuditSender, database: Any) -> None:
    """The end of an expired conversation arrives in Supabase; its copies stay until ``toold_forget`` deletes them."""
    await say(store, "old", 1, at=time.time() - 2 * DAY)
    await say(store, "young", 1)
    sender.start()
    await settled(store, 2)
    store.apply(json.dumps, Retention(conversation_days=1), copy_conversations=True)
    await settled(store, 3)
    query = "SELECT id, ended_at > now() - interval '1 hour' FROM toold_conversations ORDER BY id"
    assert database.sql(query) == "old|t\nyoung|"
    assert database.sql("SELECT count(*) FROM toold_messages") == "2"
    assert database.sql("SELECT toold_forget(1)") == "2"
    assert database.sql("SELECT id FROM toold_messages") == "young-1"
    assert database.sql("SELECT id FROM toold_conversations") == "young"


async def test_anon_key_reads_no_conversation(
    store: Store, sender: AuditSender, gateway: Any, anon_key: str, service_key: str, database: Any
) -> None:
    """The anon key is refused at the same gateway that the daemon uses."""
    await say(store, "c", 1)
    sender.start()
    await settled(store, 1)
    async with httpx.AsyncClient(base_url=f"{gateway.url}/rest/v1/") as http:
        for table in ("toold_conversations", "toold_messages"):
            answers = [
                await http.get(table, headers={"apikey": key, "Authorization": f"Bearer {key}"})
                for key in (anon_key, service_key)
            ]
            assert answers[0].status_code in {401, 403}
            assert len(answers[1].json()) == 1


def settings(directory: Path, url: str, key: str, content: str) -> Settings:
    return Settings(
        state_dir=directory,
        port=0,
        http_port=0,
        simulate=True,
        workspace=(directory,),
        audit_content=content,
        supabase_url=url,
        supabase_service_role_key=SecretStr(key),
    )


async def converse(directory: Path, port: int) -> dict[str, Any]:
    """Make two calls of one conversation and return the status."""
    async with MCPWebSocketClient("127.0.0.1", port, (directory / "token").read_text().strip()) as client:
        first = (await client.call("chat", {"prompt": f"My key is {SECRET}", "model": "glm-4.6"})).structured
        assert isinstance(first, dict)
        going_on = {"prompt": "And then?", "model": "glm-4.6", "continuation_id": first["continuation_id"]}
        await client.call("chat", going_on)
        status = (await client.call("status", {})).structured
        assert isinstance(status, dict)
        return status


async def test_daemon_sends_copies_if_content_is_stored(
    gateway: Any, service_key: str, database: Any, tmp_path: Path
) -> None:
    """Each question and answer is copied once, without secrets, with its call, model and vendor."""
    async with running(settings(tmp_path, gateway.url, service_key, "full")) as daemon:
        status = await converse(tmp_path, daemon.websocket.port)
        assert status["audit"]["remote"]["copies"]["state"] != "off"
        assert daemon.sender

        async def sent() -> bool:
            copies: dict[str, Any] = (await daemon.sender.status())["copies"] if daemon.sender else {}
            return bool(copies["sent"] == 4)

        await until(sent)
    query = "SELECT position, role, provider, model, content->>'tool' FROM toold_messages ORDER BY position"
    assert database.sql(query).splitlines() == [
        "1|user|||chat",
        "2|assistant|glm|glm-4.6|chat",
        "3|user|||chat",
        "4|assistant|glm|glm-4.6|chat",
    ]
    assert database.sql("SELECT content->>'text' FROM toold_messages WHERE position = 1") == f"My key is {REDACTED}"
    assert database.sql("SELECT title FROM toold_conversations") == f"My key is {REDACTED}"
    everything = database.sql(
        "SELECT * FROM toold_messages; SELECT * FROM toold_conversations; SELECT * FROM toold_calls"
    )
    assert SECRET not in everything
    joined = "toold_messages JOIN toold_calls ON call_id = toold_calls.id JOIN toold_conversations AS talk"
    query = (
        f"SELECT count(*), count(DISTINCT call_id) FROM {joined} ON talk.id = conversation_id "  # noqa: S608 - our own names
        "WHERE talk.session_id = toold_calls.session_id"
    )
    assert database.sql(query) == "4|2"


@pytest.mark.parametrize("content", ["shape", "none"])
async def test_daemon_sends_no_copies_by_default(
    gateway: Any, service_key: str, database: Any, tmp_path: Path, content: str
) -> None:
    """The calls arrive, no conversation and no message does, and no copy is queued."""
    async with running(settings(tmp_path, gateway.url, service_key, content)) as daemon:
        status = await converse(tmp_path, daemon.websocket.port)
        assert status["audit"]["remote"]["copies"]["state"] == "off"
        assert status["audit"]["remote"]["copies"]["backlog"] == 0
    async with running(settings(tmp_path, gateway.url, service_key, "full")):
        pass
    assert database.sql("SELECT tool FROM toold_calls ORDER BY started_at") == "chat\nchat\nstatus"
    assert database.sql("SELECT count(*) FROM toold_conversations; SELECT count(*) FROM toold_messages") == "0\n0"
