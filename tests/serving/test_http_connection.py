"""What comes over one HTTP connection, over real sockets: what is taken, refused, bounded in bytes and in time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from toold.serving import COMPLETE, HttpServer, http_connection
from toold.serving.http_connection import MAX_HEAD_BYTES

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /p HTTP/1.1\r\n" + HOST
CHUNKED = b"POST /c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"

Ask = Callable[..., Awaitable[bytes]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells what it was asked: path, names of headers, body; and whether all of it was there when it was called."""
    body, more, complete = b"", True, COMPLETE in scope.get("extensions", ())
    while more and scope["path"] != "/early":
        message = await receive()
        if message["type"] != "http.request":
            return
        body, more = body + message["body"], message["more_body"]
    names = b",".join(name for name, _ in scope["headers"])
    told = scope["path"].encode() + b" " + names + b" " + body
    headers = [(b"content-length", str(len(told)).encode()), (b"complete", str(complete).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": told})


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """``ask(*pieces, until=…)``: what comes back to these, until these bytes have come or the connection ends."""
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
        pytest.param(CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n", id="a coding beside the chunks"),
        pytest.param(b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", id="HTTP 2 without its preface"),
        pytest.param(b"GET / HTTP/0.9\r\n" + HOST + b"\r\n", id="HTTP 0.9 by its name"),
        pytest.param(b"GET / HTTP/1.0\r\n" + HOST + HOST + b"\r\n", id="two hosts in HTTP 1.0"),
    ],
)
async def test_what_is_no_request_is_refused(ask: Ask, request_: bytes) -> None:
    """It gets a 400, and the connection ends: where the next request would begin, nobody knows."""
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
async def test_what_leads_to_nothing_is_bounded(ask: Ask, pieces: tuple[bytes, ...]) -> None:
    """A head, a trailer, a chunk's line that does not end is refused at the bound, and kept no longer."""
    assert b"exceeds 16384 bytes" in await ask(*pieces)


async def test_a_body_has_no_bound_here(ask: Ask) -> None:
    """What is taken of it, the app says: pieces of a body are no head, however many there are."""
    size = 3 * MAX_HEAD_BYTES
    head = b"POST /b HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size
    answer = await ask(head, *(b"a" * MAX_HEAD_BYTES for _ in range(3)), until=b"a" * size)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"/b host,content-length " + b"a" * size)


async def test_a_head_that_does_not_come(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that says nothing, or stops in the middle of a head, is closed: also behind a good request."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.2)
    good = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    assert await ask() == b""
    assert await ask(b"GET / HT") == b""
    assert (await ask(good, b"GET /2 HT")).endswith(b"/1 host ")


async def test_a_body_that_comes_slowly_is_none_of_the_heads(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the pieces of a body may take, the app says."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.4)
    assert (await ask(CHUNKED, b"1\r", b"\na", b"\r\n0\r\n\r\n", until=b" a", pause_s=0.5)).endswith(b" a")


async def test_a_head_has_its_time_on_a_connection_that_was_used_before(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long a connection is kept between requests bounds no request that has begun."""
    kept = property(lambda _: 0.5, lambda _, __: None)
    monkeypatch.setattr(http_connection.HttpConnection, "timeout_keep_alive", kept, raising=False)
    good = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    assert await ask(good) != b""  # and it ends, as nothing follows
    slowly = [bytes([byte]) for byte in b"GET /2 HTTP/1.1\r\n" + HOST + b"\r\n"]  # for some 0.8 s
    assert (await ask(good, *slowly, until=b"/2 host ", pause_s=0.02)).endswith(b"/2 host ")


async def test_an_app_is_told_that_all_has_come(ask: Ask) -> None:
    """Where the whole request came at once, it need not reckon with a client that stops in the middle."""
    head = POST + b"Content-Length: 1\r\n\r\n"
    assert b"complete: True" in await ask(head + b"a", until=b" a")
    assert b"complete: False" in await ask(head, b"a", until=b" a")


async def test_a_body_that_stops_behind_its_answer(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed: the app is through with it, and waits for nothing."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.2)
    answer = await ask(POST.replace(b"/p", b"/early") + b"Content-Length: 9\r\n\r\n", b"a", b"a")
    assert answer.endswith(b"/early host,content-length ")


async def test_trailers_are_no_headers(ask: Ask) -> None:
    """A request is judged by its head; what comes behind its body adds nothing to that."""
    answer = await ask(CHUNKED + b"1\r\na\r\n0\r\nAuthorization: Bearer x\r\n\r\n", until=b" a")
    assert answer.endswith(b"/c host,transfer-encoding a")


@pytest.mark.parametrize("cut", [1, 20, 60, 140, 10_000])
async def test_a_request_that_asks_for_another_protocol_is_answered_in_this_one(
    ask: Ask, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As Java's client asks for HTTP/2 with its requests: its body is read, and so is the request behind it. Nothing of
    it is logged, for nothing is wrong.
    """
    asks = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
    second = b"GET /2 HTTP/1.1\r\n" + HOST + b"\r\n"
    both = POST + asks + b"Content-Length: 5\r\n\r\nhello" + second
    answer = await ask(both[:cut], both[cut:], until=b"/2 host ")
    assert b"/p host,connection,upgrade,http2-settings,content-length hello" in answer
    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert caplog.records == []


async def test_a_body_in_chunks_behind_such_a_request(ask: Ask) -> None:
    """It is read too, and a head that is none is refused as ever."""
    asks = CHUNKED.replace(HOST, HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n")
    assert (await ask(asks, b"1\r\na\r\n0\r\n\r\n", until=b" a")).endswith(b" a")
    assert (await ask(asks.replace(HOST, b""))).startswith(b"HTTP/1.1 400 ")


async def test_who_asks_for_another_protocol_behind_another_request(ask: Ask) -> None:
    """The first request is answered, and the connection ends: the second may be sent again."""
    first = b"GET /1 HTTP/1.1\r\n" + HOST + b"\r\n"
    second = b"POST /2 HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\na"
    answer = await ask(first + second)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"/1 host " in answer


async def test_requests_that_come_at_once_are_answered_in_order(ask: Ask) -> None:
    """Each of a pipeline gets its own answer; none begins before the one before is answered."""
    many = b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(5))
    answer = await ask(many, until=b"/4 host ")
    assert [answer.index(b"/%d host " % number) for number in range(5)] == sorted(
        answer.index(b"/%d host " % number) for number in range(5)
    )


async def test_a_request_that_waits_for_leave_gets_it(ask: Ask) -> None:
    """``Expect: 100-continue`` is answered before the body is read."""
    head = b"POST /e HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    answer = await ask(head, b"a", until=b" a")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")


async def test_few_requests_wait_behind_one_another(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands that come at once, some hundreds are begun, and the others read as those are answered: all are."""
    waiting = []
    answered = http_connection.HttpConnection.on_response_complete

    def noted(self: http_connection.HttpConnection) -> None:
        waiting.append(len(self.pipeline))
        answered(self)

    monkeypatch.setattr(http_connection.HttpConnection, "on_response_complete", noted)
    many = b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(3000))
    answer = await ask(many, until=b"/2999 host ")
    assert answer.count(b"HTTP/1.1 200 ") == len(waiting) == 3000
    assert max(waiting) < http_connection._FED_BYTES / len(b"GET /0 HTTP/1.1\r\n" + HOST)


async def test_a_long_body_behind_many_requests(ask: Ask) -> None:
    """It is whole, though it came while others waited for their turn."""
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


async def test_a_request_is_told_that_its_client_left_though_others_wait_behind_it() -> None:
    """Each that is being answered ends with its connection, not the latest alone."""
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


async def test_a_reader_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is held for it no longer, and who wrote it goes on."""
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


async def test_a_part_of_a_head_ends_no_request_that_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time begins with the answer of the request before."""
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


async def test_a_head_behind_a_request_for_another_protocol_has_its_time(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any other: a connection that stops within it is closed."""
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.2)
    asks = POST.replace(HOST, HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n") + b"Content-Length: 1\r\n\r\na"
    answer = await ask(asks, b"GET /2 HT", b"TP")
    assert answer.count(b"HTTP/1.1 ") == 1
