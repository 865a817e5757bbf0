"""Supabase's client against a local HTTP server: its requests and its errors."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from toold.audit.supabase_writer import SupabaseWriteError, SupabaseWriter
from toold.serving import HttpServer
from toold.store import GENESIS, CallRow, ChainedRow, ChainSigner, Checkpoint, ConversationCopy

KEY = SecretStr("sb_secret_for_the_tests")
MakeRow = Callable[..., CallRow]


class Endpoint:
    """Answers ``status`` and ``body`` to every request and records the requests."""

    def __init__(self) -> None:
        self.status, self.body = 201, b""
        self.requests: list[Request] = []
        self.bodies: list[Any] = []
        self.url = ""

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        self.bodies.append(json.loads(await request.body()))
        return Response(self.body, self.status)


@pytest.fixture
def chained_row(row: MakeRow) -> ChainedRow:
    """A call that reached a vendor."""
    return ChainedRow(seq=1, mac=b"m" * 32, call=row(provider="kimi"))


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    app = Starlette(routes=[Route("/rest/v1/{table}", endpoint.answer, methods=["POST"])])
    server = HttpServer(app, "127.0.0.1", 0, "--port")
    await server.start()
    endpoint.url = f"http://127.0.0.1:{server.port}"
    yield endpoint
    await server.close()


@pytest.fixture
async def remote(endpoint: Endpoint) -> AsyncIterator[SupabaseWriter]:
    remote = await asyncio.to_thread(SupabaseWriter, endpoint.url, KEY, "chain")
    yield remote
    await remote.close()


async def test_rows_are_upserted_by_id(remote: SupabaseWriter, endpoint: Endpoint, chained_row: ChainedRow) -> None:
    """Each table gets one request, which merges by id, returns no rows and carries the key."""
    await remote.write([chained_row])
    assert [request.path_params["table"] for request in endpoint.requests] == [
        "toold_sessions",
        "toold_calls",
        "toold_provider_calls",
    ]
    for request, rows in zip(endpoint.requests, endpoint.bodies, strict=True):
        assert request.query_params["on_conflict"] == "id"
        assert {"resolution=merge-duplicates", "return=minimal"} <= set(request.headers["prefer"].split(","))
        assert request.headers["apikey"] == KEY.get_secret_value()
        assert len(rows) == 1


async def test_table_without_rows_is_not_written(remote: SupabaseWriter, endpoint: Endpoint, row: MakeRow) -> None:
    """Calls without a vendor send no request for provider calls."""
    await remote.write([ChainedRow(seq=1, mac=b"m" * 32, call=row())])
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(("status", "failure_kind"), [(503, "later"), (401, "setup"), (400, "refused")])
async def test_errors_have_a_verdict(
    remote: SupabaseWriter, endpoint: Endpoint, chained_row: ChainedRow, status: int, failure_kind: str
) -> None:
    """A response is classified by status and body after one request; the client does not retry by itself."""
    endpoint.status, endpoint.body = status, b'{"code":null,"message":"words"}'
    with pytest.raises(SupabaseWriteError, match="words") as raised:
        await remote.write([chained_row])
    assert raised.value.failure.kind == failure_kind
    assert len(endpoint.requests) == 1


async def test_unreachable_project_is_retried(chained_row: ChainedRow) -> None:
    """A failed connection is retried and does not count as a fault of the rows."""
    remote = await asyncio.to_thread(SupabaseWriter, "http://127.0.0.1:1", KEY, "chain")
    with pytest.raises(SupabaseWriteError, match="no answer") as raised:
        await remote.write([chained_row])
    assert raised.value.failure.kind == "later"
    await remote.close()


async def test_errors_do_not_contain_the_key(
    remote: SupabaseWriter, endpoint: Endpoint, chained_row: ChainedRow
) -> None:
    """A key that the server quotes is not in the error."""
    endpoint.status, endpoint.body = 401, json.dumps({"message": f"bad key {KEY.get_secret_value()}"}).encode()
    with pytest.raises(SupabaseWriteError) as raised:
        await remote.write([chained_row])
    assert KEY.get_secret_value() not in str(raised.value)


async def test_checkpoints_are_upserted_too(remote: SupabaseWriter, endpoint: Endpoint) -> None:
    """An extended checkpoint replaces its earlier version."""
    signer = ChainSigner(b"k" * 32)
    note = Checkpoint(
        number=3, kind="gap", first_seq=2, last_seq=1, calls=None, since=1, until=2, before=GENESIS, after=GENESIS
    )
    await remote.write_checkpoints([signer.checkpoint(note)])
    ((request,), ((sent,),)) = endpoint.requests, endpoint.bodies
    assert request.path_params["table"] == "toold_checkpoints"
    assert request.query_params["on_conflict"] == "id"
    assert (sent["id"], sent["chain"], sent["kind"]) == ("chain-3", "chain", "gap")


async def test_copies_are_upserted_too(remote: SupabaseWriter, endpoint: Endpoint) -> None:
    """Conversations are written before their messages; an end without messages writes no messages."""
    conversation_copy = ConversationCopy(
        number=1, id="c-1", conversation_id="c", principal="local", session_id="s", started_at=1.0, at=2.0,
        ended_at=None, position=1, call_id="call", role="user", provider=None, model=None, content={"text": "Hello"},
    )  # fmt: skip
    ended = ConversationCopy(
        number=2, id="c", conversation_id="c", principal="local", session_id=None, started_at=1.0, at=2.0,
        ended_at=3.0, position=None, call_id=None, role=None, provider=None, model=None, content=None,
    )  # fmt: skip
    await remote.write_copies([conversation_copy])
    await remote.write_copies([ended])
    assert [request.path_params["table"] for request in endpoint.requests] == [
        "toold_conversations",
        "toold_messages",
        "toold_conversations",
    ]
    assert all(request.query_params["on_conflict"] == "id" for request in endpoint.requests)
