"""The sender with a real Supabase: every call arrives once, despite failures and restarts."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.waiting import until
from toold.audit import AuditSender, SupabaseWriter
from toold.client import MCPWebSocketClient
from toold.daemon.config.settings import Settings
from toold.daemon.lifecycle import running
from toold.store import CallRow, ChainedRow, Retention, Store, open_sqlite_store

MakeRow = Callable[..., CallRow]
StartSender = Callable[[str], AuditSender]


@pytest.fixture
async def store(tmp_path: Path, audit_key: bytes) -> AsyncIterator[Store]:
    store = open_sqlite_store(tmp_path / "toold.db", content=json.dumps, retention=Retention(), key=audit_key)
    yield store
    await store.close()


@pytest.fixture
async def start(store: Store, gateway: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StartSender]:
    """A function that starts a sender with a key and short pauses after failures; the fixture closes the sender."""
    monkeypatch.setattr("toold.audit.outbox_sender.pause_s", lambda *_: 0.05)
    senders = []

    def begin(key: str) -> AuditSender:
        sender = AuditSender(store, lambda: SupabaseWriter(gateway.url, SecretStr(key), store.audit.chain))
        sender.start()
        senders.append(sender)
        return sender

    yield begin
    for sender in senders:
        await sender.close(30)


async def settled(store: Store, rows: int) -> None:
    """Wait until ``rows`` calls are sent or refused."""

    async def reached() -> bool:
        outbox = await store.audit.outbox_state()
        return outbox.sent + outbox.refused >= rows

    await until(reached)


async def test_every_call_arrives_once(
    store: Store, start: StartSender, service_key: str, database: Any, row: MakeRow
) -> None:
    """More calls than fit in a batch arrive complete in all three tables, and the outbox is empty."""
    at = int(time.time()) - 1000.75
    rows = [row(id=f"call-{number}", session_id=f"s-{number % 2}", started_at=at + number) for number in range(450)]
    request = row(
        id="asked",
        session_id="s-0",
        started_at=at,
        arguments={"text": "str[3]"},
        provider="kimi",
        model="kimi-k2",
        simulated=True,
        input_tokens=3,
        output_tokens=4,
        cost_amount=0.5,
        cost_currency="USD",
        provider_ms=9.5,
    )
    for item in (*rows, request):
        store.audit.record(item)
    start(service_key)
    await settled(store, 451)
    assert database.sql("SELECT count(*), count(DISTINCT id) FROM toold_calls") == "451|451"
    times = "extract(epoch FROM first_call_at)::float, extract(epoch FROM last_call_at)::float"
    assert database.sql(f"SELECT id, {times} FROM toold_sessions ORDER BY id").splitlines() == [  # noqa: S608 - our own names
        f"s-0|{at}|{at + 448}",
        f"s-1|{at + 1}|{at + 449}",
    ]
    assert (
        database.sql(
            "SELECT call_id, provider, model, simulated, latency_ms, input_tokens, output_tokens, cost_amount, "
            "cost_currency FROM toold_provider_calls"
        )
        == "asked|kimi|kimi-k2|t|9.5|3|4|0.5|USD"
    )
    assert database.sql("SELECT arguments->>'text', latency_ms FROM toold_calls WHERE id = 'asked'") == "str[3]|1.5"
    outbox = await store.audit.outbox_state()
    assert (outbox.sent, outbox.backlog, outbox.refused, outbox.dropped) == (451, 0, 0, 0)


async def test_repeated_sending_adds_no_rows(gateway: Any, service_key: str, database: Any, row: MakeRow) -> None:
    """Calls that are sent twice because their arrival was not confirmed are stored once."""
    remote = await asyncio.to_thread(SupabaseWriter, gateway.url, SecretStr(service_key), "chain")
    calls = [row(id=name, provider="kimi") for name in "abc"]
    rows = [ChainedRow(seq=seq, mac=b"m" * 32, call=call) for seq, call in enumerate(calls, 1)]
    for some in (rows, rows, rows[1:]):
        await remote.write(some)
    await remote.close()
    assert database.sql("SELECT count(*) FROM toold_calls; SELECT count(*) FROM toold_provider_calls") == "3\n3"


@pytest.mark.parametrize("part", ["postgrest", "cluster"])
async def test_server_restarts_under_load_lose_no_call(
    store: Store, start: StartSender, service_key: str, database: Any, request: pytest.FixtureRequest, part: str,
    row: MakeRow,
) -> None:  # fmt: skip
    """PostgREST or PostgreSQL stops and starts twice while calls are sent: every call arrives once, with its number
    in the chain."""
    server = request.getfixturevalue(part)
    sender = start(service_key)

    async def failed() -> bool:
        return bool((await sender.status())["failures_in_a_row"])

    def calls(first: int, last: int) -> None:
        for number in range(first, last):
            store.audit.record(row(id=f"call-{number}"))

    for start_at in (0, 600):
        calls(start_at, start_at + 300)
        if start_at == 0:
            await settled(store, 300)  # the second stop interrupts their sending
        await asyncio.to_thread(server.stop)
        try:
            calls(start_at + 300, start_at + 600)
            await until(failed)
        finally:
            await asyncio.to_thread(server.start)
    await settled(store, 1200)
    assert database.sql("SELECT count(*), count(DISTINCT id), count(DISTINCT seq) FROM toold_calls") == "1200|1200|1200"
    status = await sender.status()
    assert (status["sent"], status["refused"], status["dropped"]) == (1200, 0, 0)


OLD_PROJECT = """
ALTER TABLE toold_calls DROP COLUMN chain, DROP COLUMN seq, DROP COLUMN mac;
ALTER TABLE toold_provider_calls DROP COLUMN chain, DROP COLUMN seq;
DROP TABLE toold_checkpoints, toold_conversations, toold_messages;
NOTIFY pgrst, 'reload schema';
"""
"""The state after the first migration only."""


async def test_missing_migrations_delay_calls(
    store: Store, start: StartSender, service_key: str, database: Any, row: MakeRow
) -> None:
    """Without the newer migrations calls wait, and the status says to apply them; then the calls are sent."""
    database.sql(OLD_PROJECT)
    try:
        store.audit.record(row())
        await store.flush()
        sender = start(service_key)

        async def reported() -> bool:
            return "apply all files of supabase/migrations" in str((await sender.status())["last_error"])

        await until(reported)
        outbox = await store.audit.outbox_state()
        assert (outbox.backlog, outbox.refused) == (1, 0)
    finally:
        database.migrate()
    await settled(store, 1)
    assert database.sql("SELECT count(*) FROM toold_calls WHERE chain IS NOT NULL") == "1"


async def test_slow_supabase_does_not_delay_calls(
    store: Store, start: StartSender, service_key: str, database: Any, gateway: Any, row: MakeRow
) -> None:
    """Calls are recorded while a response is pending and sent after it."""
    gateway.open.clear()
    store.audit.record(row(id="first"))
    await store.flush()
    sender = start(service_key)

    async def has_requests() -> bool:
        return bool(gateway.requests)

    await until(has_requests)
    for number in range(300):
        store.audit.record(row(id=f"call-{number}"))
    await store.flush()
    assert (store.audit.rows_written, sender.backlog, (await sender.status())["state"]) == (301, 301, "sending")
    gateway.open.set()
    await settled(store, 301)
    assert database.sql("SELECT count(*) FROM toold_calls") == "301"


async def test_refused_calls_do_not_delay_others(
    store: Store, start: StartSender, service_key: str, database: Any, row: MakeRow
) -> None:
    """Calls that a constraint rejects are counted with PostgreSQL's reason; all others arrive."""
    for number in range(100):
        store.audit.record(row(id=f"call-{number}", latency_ms=-1.0 if number in {0, 41, 99} else 1.0))
    sender = start(service_key)
    await settled(store, 100)
    assert database.sql("SELECT count(*), count(DISTINCT id) FROM toold_calls") == "97|97"
    status = await sender.status()
    assert (status["sent"], status["refused"], status["backlog"], status["last_error"]) == (97, 3, 0, None)


async def test_calls_with_nul_characters_arrive(
    store: Store, start: StartSender, service_key: str, database: Any, row: MakeRow
) -> None:
    """PostgreSQL accepts no NUL character in text; calls that contain some arrive with a replacement."""
    store.audit.record(row(tool="ec\0ho", arguments={"a\0": ["\0"]}))
    start(service_key)
    await settled(store, 1)
    assert database.sql("SELECT tool, arguments FROM toold_calls") == 'ec\ufffdho|{"a\ufffd": ["\ufffd"]}'


async def test_anon_key_delays_calls(
    store: Store, start: StartSender, anon_key: str, service_key: str, database: Any, row: MakeRow
) -> None:
    """With the wrong key calls wait, and the status names the setting to fix; with the right key they are sent."""
    store.audit.record(row())
    await store.flush()
    sender = start(anon_key)

    async def reported() -> bool:
        return "TOOLD_SUPABASE_SERVICE_ROLE_KEY" in str((await sender.status())["last_error"])

    await until(reported)
    assert (await store.audit.outbox_state()).backlog == 1
    await sender.close(30)
    start(service_key)
    await settled(store, 1)
    assert database.sql("SELECT count(*) FROM toold_calls") == "1"


async def test_close_sends_the_backlog(
    store: Store, start: StartSender, service_key: str, database: Any, row: MakeRow
) -> None:
    """Calls recorded before the close are sent by it, even more than one batch."""
    sender = start(service_key)
    for number in range(450):
        store.audit.record(row(id=f"call-{number}"))
    await sender.close(60)
    assert database.sql("SELECT count(*) FROM toold_calls") == "450"
    await store.flush()
    assert (await store.audit.outbox_state()).backlog == 0


async def test_close_times_out(store: Store, start: StartSender, service_key: str, gateway: Any, row: MakeRow) -> None:
    """If no response arrives, closing returns at its timeout, and the calls stay unsent."""
    gateway.open.clear()
    sender = start(service_key)
    store.audit.record(row())
    async with asyncio.timeout(30):
        await sender.close(0.2)
    assert (await store.audit.outbox_state()).backlog == 1


async def test_daemon_sends_its_calls(gateway: Any, service_key: str, database: Any, tmp_path: Path) -> None:
    """A daemon with Supabase's settings sends its calls, reports this in its status, and sends the last ones when it
    closes."""
    settings = Settings(
        state_dir=tmp_path,
        port=0,
        http_port=0,
        simulate=True,
        workspace=(tmp_path,),
        supabase_url=gateway.url,
        supabase_service_role_key=SecretStr(service_key),
    )
    async with running(settings) as daemon:
        token = (tmp_path / "token").read_text().strip()
        async with MCPWebSocketClient("127.0.0.1", daemon.websocket.port, token) as client:
            await client.call("echo", {"text": "Hello"})
            status = (await client.call("status", {})).structured
        assert isinstance(status, dict)
        assert status["audit"]["remote"].keys() >= {"state", "backlog", "sent", "refused", "last_sent_at", "last_error"}
    assert database.sql("SELECT tool FROM toold_calls ORDER BY started_at") == "echo\nstatus"
