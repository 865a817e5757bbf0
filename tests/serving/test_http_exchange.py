"""Requests and responses of ASGI apps, over real sockets: what they get, what they may send, and what happens if they
fail.
"""

import asyncio

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from toold.serving import HttpServer, http_server

GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LENGTH = (b"content-length", b"2")


async def asked(app: ASGIApp, request: bytes = GET, *, close: bool = True) -> bytes:
    """The response to one request; ``close``: up to the end of the connection, else what comes at once."""
    server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(request)
        return await reader.read() if close else await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()
        await server.close()


def answering(*headers: tuple[bytes, bytes], body: bytes = b"ok", status: int = 200) -> ASGIApp:
    """An app with this response."""

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


@pytest.mark.parametrize("bad", [(b"a", b"1\r\nset-cookie: b"), (b"a\r\nb", b"1"), (b"a", b"\0")])
async def test_no_response_has_a_forged_header(bad: tuple[bytes, bytes], caplog: pytest.LogCaptureFixture) -> None:
    """A header with a line break or a control character is refused, each time."""
    for _ in range(2):
        assert (await asked(answering(LENGTH, bad))).startswith(b"HTTP/1.1 500 ")
    assert "Exception in ASGI application" in caplog.text


@pytest.mark.parametrize("body", [b"o", b"okay"])
async def test_a_response_of_another_length_ends_the_connection(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A client must not take the next response for its rest."""

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [LENGTH]})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await send({"type": "http.response.body", "body": body})

    assert (await asked(app)).startswith(b"HTTP/1.1 200 ")
    assert "Content-Length" in caplog.text


async def test_an_app_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The response has the status 500; if it has begun, the connection ends."""

    async def silent(_: Scope, __: Receive, ___: Send) -> None:
        pass

    async def failing(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        raise ValueError("failed")

    assert (await asked(silent)).endswith(b"\r\n\r\nInternal Server Error")
    assert (await asked(failing)).startswith(b"HTTP/1.1 200 ")
    assert "failed" in caplog.text


async def test_the_head_of_a_stream_does_not_wait_for_its_body() -> None:
    """A client knows at once that it is answered."""
    ended = asyncio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    assert (await asked(app, close=False)).startswith(b"HTTP/1.1 200 ")
    await ended.wait()


async def test_a_response_without_a_length_is_chunked() -> None:
    """And one that says so closes the connection."""
    answer = await asked(answering((b"connection", b"close")))
    assert b"transfer-encoding: chunked\r\n" in answer
    assert answer.endswith(b"\r\n\r\n2\r\nok\r\n0\r\n\r\n")


async def test_a_response_to_head_has_no_body() -> None:
    """Its length is that of the body that GET would get."""
    answer = await asked(answering(LENGTH, (b"connection", b"close")), GET.replace(b"GET", b"HEAD"))
    assert b"content-length: 2\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_each_response_has_the_date() -> None:
    """As HTTP requires of servers with a clock (RFC 9110, 6.6.1)."""
    assert b"\r\ndate: " in await asked(answering(LENGTH), close=False)


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a response, and again after a later one."""
    monkeypatch.setattr(http_server, "KEEP_ALIVE_S", 0.3)
    server = HttpServer(answering(LENGTH), "127.0.0.1", 0, "--http-port")
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for _ in range(2):
        writer.write(GET)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
    assert await reader.read() == b""
    writer.close()
    await server.close()


@pytest.mark.parametrize(("header", "scheme"), [(b"", b"http"), (b"X-Forwarded-Proto: https\r\n", b"https")])
async def test_a_proxy_on_this_machine_states_the_scheme(header: bytes, scheme: bytes) -> None:
    """By which pages of this server are recognized."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answering((b"scheme", scope["scheme"].encode()), LENGTH)(scope, receive, send)

    answer = await asked(app, GET.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n"), close=False)
    assert b"\r\nscheme: " + scheme + b"\r\n" in answer
