"""Listening on ports and serving an app, over real sockets."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from toold.serving import HttpServer, http_server, listen

APP = PlainTextResponse("hello")


def server(host: str = "127.0.0.1", port: int = 0) -> HttpServer:
    return HttpServer(APP, host, port, "--http-port")


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_in_use_is_reported(taken_port: int) -> None:
    """The error names the port, the host and the option, on one line without an errno."""
    with pytest.raises(OSError, match="port") as caught:
        listen("127.0.0.1", taken_port, "--port")
    message = (
        f"port {taken_port} on 127.0.0.1 is in use; stop the program that uses it, or set another port with --port"
    )
    assert str(caught.value) == message


async def test_a_client_closes_its_idle_connection_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle connection is closed, but later than httpx closes it, so that no request meets a closed connection."""
    assert (httpx.Limits().keepalive_expiry or 0) < http_server.KEEP_ALIVE_S
    monkeypatch.setattr(http_server, "KEEP_ALIVE_S", 0.05)
    serving = server()
    await serving.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.read()).endswith(b"hello")  # to the end: the server has closed it
    writer.close()
    await serving.close()


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("192.0.2.1", r"^cannot listen on port 0 of 192\.0\.2\.1 \(.+\); set another --http-port or --host$"),
        ("x" * 64 + ".example", "is not a valid address to listen on; set another --host$"),
    ],
)
def test_an_invalid_host_is_reported(host: str, message: str) -> None:
    """An address of another machine, or an invalid name."""
    with pytest.raises(OSError, match=message):
        listen(host, 0, "--http-port")


def test_ipv4_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients connect to 127.0.0.1 by default, so ``localhost`` listens there."""
    both = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with closing(listen("localhost", 0, "--port")) as listener:
        assert listener.family == socket.AF_INET


async def test_small_answers_are_sent_at_once() -> None:
    """Nagle's algorithm is off for accepted connections."""
    delayed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        delayed.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(look, sock=listen("127.0.0.1", 0, "--port")) as listening:
        _, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        assert await delayed
        writer.close()


async def test_port_0_selects_a_free_port() -> None:
    """The port can be read, and the app answers there."""
    http_server = server()
    await http_server.start()
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        assert (await client.get(f"http://127.0.0.1:{http_server.port}/")).text == "hello"
    await http_server.close()


async def test_starting_on_a_port_in_use_fails(taken_port: int) -> None:
    """With the given option in the message, and nothing to close."""
    http_server = server(port=taken_port)
    with pytest.raises(OSError, match="set another port with --http-port"):
        await http_server.start()
    await http_server.close()


async def test_a_later_failure_at_the_start_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any failure of uvicorn's start is raised, and the port is released."""

    async def startup(*_: object) -> None:
        raise LookupError("a part is missing")

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    http_server = server()
    with pytest.raises(LookupError, match="a part is missing"):
        await http_server.start()
    listen("127.0.0.1", http_server.port, "--port").close()


async def test_signal_handlers_are_unchanged() -> None:
    """Starting and stopping the server does not change the process's handlers."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    http_server = server()
    await http_server.start()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    await http_server.close()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_closing_releases_the_port() -> None:
    """Also if a client keeps its connection open."""
    http_server = server()
    await http_server.start()
    _, writer = await asyncio.open_connection("127.0.0.1", http_server.port)
    await http_server.close()
    writer.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", http_server.port)) != 0


async def test_a_running_request_is_answered_before_the_server_closes() -> None:
    """Closing waits for its answer."""
    running, may_end = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        running.set()
        await may_end.wait()
        await PlainTextResponse("late")(scope, receive, send)

    http_server = HttpServer(app, "127.0.0.1", 0, "--http-port")
    await http_server.start()
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        request = asyncio.create_task(client.get(f"http://127.0.0.1:{http_server.port}/"))
        await running.wait()
        closing = asyncio.create_task(http_server.close())
        may_end.set()
        assert (await request).text == "late"
        await closing


async def test_a_server_that_never_started() -> None:
    """It has ended, and there is nothing to close."""
    http_server = server()
    await http_server.ended()
    await http_server.close()


async def test_ipv6() -> None:
    """It listens on ::1, and not on the same port of IPv4."""
    http_server = server("::1")
    try:
        await http_server.start()
    except OSError:
        pytest.skip("no IPv6 loopback on this machine")
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        assert (await client.get(f"http://[::1]:{http_server.port}/")).text == "hello"
    await http_server.close()
