"""HTTP connections over real sockets: accepted and rejected requests, and limits of size and time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from toold.serving import (
    COMPLETE,
    ConnectionLimits,
    ConnectionSlots,
    HttpPeer,
    HttpServer,
    http_connection,
)
from toold.serving.http_connection import MAX_HEAD_BYTES

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /p HTTP/1.1\r\n" + HOST
CHUNKED = b"POST /c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"

Ask = Callable[..., Awaitable[bytes]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Returns what it received: path, header names, body, and whether the request was complete when the app was
    called.
    """
    body, more, complete = b"", True, COMPLETE in scope.get("extensions", ())
    while more and scope["path"] != "/early":
        message = await receive()
        if message["type"] != "http.request":
            return
        body, more = body + message["body"], message["more_body"]
    names = b",".join(name for name, _ in scope["headers"])
    received = scope["path"].encode() + b" " + names + b" " + body
    headers = [(b"content-length", str(len(received)).encode()), (b"complete", str(complete).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": received})


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """``ask(*pieces, until=…)``: sends the pieces; returns the response up to ``until`` or the end of the
    connection.
    """
    server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await server.start()

    async def ask(*pieces: bytes, until: bytes | None = None, pause_s: float = 0.01) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        answer = b""
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)  # so that the pieces come one by one; what is asserted holds either way
            while until is None or until not in answer:
                part = await reader.read(65536)
                if not part:
                    break
                answer += part
        except ConnectionError:  # it was closed while there was more to be read
            pass
        finally:
            writer.close()
        return answer

    yield ask
    await server.close()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", id="TLS"),
        pytest.param(b"GET /\r\n\r\n", id="HTTP 0.9"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n", id="a space before the colon"),
        pytest.param(b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n z\r\n\r\n", id="a folded header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + HOST + b"X: \0\r\n\r\n", id="a NUL in a header"),
        pytest.param(b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n", id="a path that is not ASCII"),
        pytest.param(CHUNKED.replace(HOST, HOST + b"Content-Length: 5\r\n") + b"0\r\n\r\n", id="two framings"),
        pytest.param(POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(POST + b"Content-Length: -5\r\n\r\n", id="a negative length"),
        pytest.param(POST + b"Content-Length: %d\r\n\r\n" % 10**30, id="a length of 30 digits"),
        pytest.param(CHUNKED + b"zz\r\n", id="a chunk of no length"),
        pytest.param(
            CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n", id="a coding in addition to chunked"
        ),
        pytest.param(b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", id="HTTP 2 without its preface"),
        pytest.param(b"GET / HTTP/0.9\r\n" + HOST + b"\r\n", id="HTTP 0.9 by its name"),
        pytest.param(b"GET / HTTP/1.0\r\n" + HOST + HOST + b"\r\n", id="two hosts in HTTP 1.0"),
    ],
)
async def test_invalid_requests_are_rejected(ask: Ask, request_: bytes) -> None:
    """A 400, and the connection closes: the start of the next request is unknown."""
    answer = await ask(request_)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"Invalid HTTP request received.")


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((b"GET / HTTP/1.1\r\n" + HOST + b"X: ", b"a" * MAX_HEAD_BYTES), id="a header"),
        pytest.param((b"GET /", b"a" * MAX_HEAD_BYTES), id="an address"),
        pytest.param((b"GET / HTTP/1.1\r\n" + HOST, b"X: a\r\n" * (MAX_HEAD_BYTES // 6)), id="many headers"),
        pytest.param((b"\r\n", b"\r\n" * (MAX_HEAD_BYTES // 2)), id="empty lines"),
        pytest.param((CHUNKED + b"1\r\na\r\n0\r\n", b"X: ", b"a" * MAX_HEAD_BYTES), id="a trailer"),
        pytest.param((CHUNKED + b"1;", b"a" * MAX_HEAD_BYTES, b"a" * MAX_HEAD_BYTES), id="a chunk's extension"),
    ],
)
async def test_incomplete_requests_are_limited(ask: Ask, pieces: tuple[bytes, ...]) -> None:
    """Endless heads, trailers and chunk lines are rejected at the limit."""
    assert b"exceeds 16384 bytes" in await ask(*pieces)


async def test_bodies_are_not_limited_here(ask: Ask) -> None:
    """The app decides how much of a body it reads."""
    size = 3 * MAX_HEAD_BYTES
    head = b"POST /b HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size
    answer = await ask(head, *(b"a" * MAX_HEAD_BYTES for _ in range(3)), until=b"a" * size)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"/b host,content-length " + b"a" * size)


async def test_heads_time_out(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that sends nothing, or part of a head, is closed; also after a complete request."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.2)
    good = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    assert await ask() == b""
    assert await ask(b"GET / HT") == b""
    assert (await ask(good, b"GET /2 HT")).endswith(b"/1 host ")


async def test_slow_bodies_do_not_time_out_here(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app decides how long it waits for a body."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.4)
    assert (await ask(CHUNKED, b"1\r", b"\na", b"\r\n0\r\n\r\n", until=b" a", pause_s=0.5)).endswith(b" a")


async def test_a_later_head_has_the_full_timeout(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keep-alive timeout does not apply to a request that has started."""
    keep_alive = property(lambda _: 0.5, lambda _, __: None)
    monkeypatch.setattr(http_connection.HttpConnection, "timeout_keep_alive", keep_alive, raising=False)
    good = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    assert await ask(good) != b""  # and it ends, as nothing follows
    slowly = [bytes([byte]) for byte in b"GET /2 HTTP/1.1\r\n" + HOST + b"\r\n"]  # for some 0.8 s
    assert (await ask(good, *slowly, until=b"/2 host ", pause_s=0.02)).endswith(b"/2 host ")


async def test_the_app_knows_that_the_request_is_complete(ask: Ask) -> None:
    """Then it does not have to expect a client that stops in the middle."""
    head = POST + b"Content-Length: 1\r\n\r\n"
    assert b"complete: True" in await ask(head + b"a", until=b" a")
    assert b"complete: False" in await ask(head, b"a", until=b" a")


async def test_a_body_that_stops_after_its_answer(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed: the app has finished."""
    monkeypatch.setattr(http_connection, "SKIPPED_S", 0.2)
    answer = await ask(POST.replace(b"/p", b"/early") + b"Content-Length: 9\r\n\r\n", b"a", b"a")
    assert answer.endswith(b"/early host,content-length ")


async def test_trailers_are_not_headers(ask: Ask) -> None:
    """A request is checked by its head; trailers add nothing to it."""
    answer = await ask(CHUNKED + b"1\r\na\r\n0\r\nAuthorization: Bearer x\r\n\r\n", until=b" a")
    assert answer.endswith(b"/c host,transfer-encoding a")


@pytest.mark.parametrize("cut", [1, 20, 60, 140, 10_000])
async def test_upgrade_requests_are_answered_without_upgrade(
    ask: Ask, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As Java's client sends for HTTP/2: the body is read, and so is the next request. Nothing is logged."""
    asks = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
    second = b"GET /2 HTTP/1.1\r\n" + HOST + b"\r\n"
    both = POST + asks + b"Content-Length: 5\r\n\r\nhello" + second
    answer = await ask(both[:cut], both[cut:], until=b"/2 host ")
    assert b"/p host,connection,upgrade,http2-settings,content-length hello" in answer
    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert caplog.records == []


async def test_a_chunked_body_of_an_upgrade_request(ask: Ask) -> None:
    """It is read too, and invalid heads after it are rejected."""
    asks = CHUNKED.replace(HOST, HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n")
    assert (await ask(asks, b"1\r\na\r\n0\r\n\r\n", until=b" a")).endswith(b" a")
    assert (await ask(asks.replace(HOST, b""))).startswith(b"HTTP/1.1 400 ")


async def test_an_upgrade_request_in_a_pipeline(ask: Ask) -> None:
    """The first request is answered, and the connection closes: the second may be sent again."""
    first = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    second = b"POST /2 HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\na"
    answer = await ask(first + second)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"/1 host " in answer


async def test_pipelined_requests_are_answered_in_order(ask: Ask) -> None:
    """Each starts after the previous answer."""
    many = b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(5))
    answer = await ask(many, until=b"/4 host ")
    assert [answer.index(b"/%d host " % number) for number in range(5)] == sorted(
        answer.index(b"/%d host " % number) for number in range(5)
    )


async def test_expect_continue(ask: Ask) -> None:
    """``100-continue`` is answered before the body is read."""
    head = b"POST /e HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    answer = await ask(head, b"a", until=b" a")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


async def test_pipelined_requests_are_limited(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands, some hundreds are started at once; the rest is read as those are answered."""
    waiting = []
    answered = http_connection.HttpConnection.on_response_complete

    def noted(self: http_connection.HttpConnection) -> None:
        waiting.append(len(self.pipeline))
        answered(self)

    monkeypatch.setattr(http_connection.HttpConnection, "on_response_complete", noted)
    many = b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(3000))
    answer = await ask(many, until=b"/2999 host ")
    assert answer.count(b"HTTP/1.1 200 ") == len(waiting) == 3000
    assert max(waiting) < http_connection._MAX_PARSED_BYTES / len(b"GET /0 HTTP/1.1\r\n" + HOST)


async def test_a_long_body_after_many_requests(ask: Ask) -> None:
    """It arrives complete, though it waited behind others."""
    many = b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(1000))
    size = 20 * MAX_HEAD_BYTES
    head = b"POST /b HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size
    answer = await ask(many + head + b"a" * size, until=b"a" * size)
    assert answer.count(b"HTTP/1.1 200 ") == 1001


async def served(app: ASGIApp) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of ``app``."""
    server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    yield reader, writer
    writer.close()
    await server.close()


async def test_all_requests_learn_that_the_client_disconnected() -> None:
    """Not only the latest of a pipeline."""
    began, left = asyncio.Event(), asyncio.Event()

    async def listening(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        began.set()
        while (await receive())["type"] != "http.disconnect":
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
        left.set()

    async for _, writer in served(listening):
        writer.write((b"GET / HTTP/1.1\r\n" + HOST + b"\r\n") * 2)
        await began.wait()
        writer.transport.abort()
        await left.wait()


async def test_a_reader_that_stops_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is dropped, and the writer continues."""
    monkeypatch.setattr(http_connection, "STALLED_S", 0.2)
    ended = asyncio.Event()

    async def endless(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not connection_of_server_lost():
            await send({"type": "http.response.body", "body": b"a" * 65536, "more_body": True})
        ended.set()

    lost: list[Exception | None] = []
    original = http_connection.HttpConnection.connection_lost

    def noted(self: http_connection.HttpConnection, exc: Exception | None) -> None:
        lost.append(exc)
        original(self, exc)

    def connection_of_server_lost() -> bool:
        return bool(lost)

    monkeypatch.setattr(http_connection.HttpConnection, "connection_lost", noted)
    async for reader, writer in served(endless):
        reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client's stream reads ahead else
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await ended.wait()


async def test_part_of_a_head_does_not_end_a_running_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its timeout starts with the previous answer."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.1)

    async def slow(_: Scope, __: Receive, send: Send) -> None:
        await asyncio.sleep(0.4)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async for reader, writer in served(slow):
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await asyncio.sleep(0.05)  # so that it comes by itself; what is asserted holds either way
        writer.write(b"GET /2 HT")
        assert (await reader.read()).startswith(b"HTTP/1.1 204 ")


async def test_a_head_after_an_upgrade_request_times_out(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that stops within it is closed."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.2)
    asks = POST.replace(HOST, HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n") + b"Content-Length: 1\r\n\r\na"
    answer = await ask(asks, b"GET /2 HT", b"TP")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_silent_peers_keep_no_client_out() -> None:
    """Newcomers displace the oldest peers that have not authenticated."""
    slots: ConnectionSlots[HttpPeer] = ConnectionSlots(ConnectionLimits(10, 4, 4))
    server = HttpServer(app, "127.0.0.1", 0, "--http-port", slots=slots)
    await server.start()
    try:
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /p HTTP/1.1\r\n" + HOST + b"\r\n")
        assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"HTTP/1.1 200 ")
        for displaced, _ in silent[:16]:
            assert await asyncio.wait_for(displaced.read(), 20) == b""
        for _, each in (*silent, (reader, writer)):
            each.close()
    finally:
        await server.close()
    assert (slots.displaced >= 16, slots.unauthenticated) == (True, 0)


async def dribble(writer: asyncio.StreamWriter, count: int) -> None:
    """Sends this many bytes, one by one."""
    for _ in range(count):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_the_rest_of_an_answered_body_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that continues to send it is disconnected, even if each piece arrives in time."""
    monkeypatch.setattr(http_connection, "SKIPPED_S", 0.05)
    server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        with pytest.raises(ConnectionError):
            await dribble(writer, 500)
        writer.close()
    finally:
        await server.close()
