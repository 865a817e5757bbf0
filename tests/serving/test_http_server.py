"""Listening on a port, and an app that is served there, over real sockets."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from toold.serving import HttpServer, listen

APP = PlainTextResponse("hello")


def server(host: str = "127.0.0.1", port: int = 0) -> HttpServer:
    return HttpServer(APP, host, port, "--http-port")


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_taken_port_is_told_with_what_to_do(taken_port: int) -> None:
    """The error names port, host and the flag that sets it, and is one line without a number of the system's."""
    with pytest.raises(OSError, match="port") as caught:
        listen("127.0.0.1", taken_port, "--port")
    told = f"port {taken_port} on 127.0.0.1 is in use; stop the program that uses it, or set another port with --port"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("192.0.2.1", r"^cannot listen on port 0 of 192\.0\.2\.1 \(.+\); set another --http-port or --host$"),
        ("x" * 64 + ".example", "is not a valid address to listen on; set another --host$"),
    ],
)
def test_a_host_that_is_not_here_is_told(host: str, message: str) -> None:
    """An address that this machine does not have, or that nobody can have, is told as such."""
    with pytest.raises(OSError, match=message):
        listen(host, 0, "--http-port")


def test_a_name_of_several_addresses_means_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients look for 127.0.0.1 where nothing else was said, so that is where ``localhost`` listens."""
    both = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with closing(listen("localhost", 0, "--port")) as listener:
        assert listener.family == socket.AF_INET


async def test_answers_are_not_held_back() -> None:
    """A connection that asyncio takes from the listener sends small answers at once: Nagle's delay is off."""
    delayed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        delayed.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(look, sock=listen("127.0.0.1", 0, "--port")) as listening:
        _, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        assert await delayed
        writer.close()


async def test_it_serves_on_the_port_that_it_found() -> None:
    """Port 0 takes a free one, which can be read, and the app answers there."""
    one = server()
    await one.start()
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"http://127.0.0.1:{one.port}/")).text == "hello"
    await one.close()


async def test_a_start_on_a_taken_port_fails(taken_port: int) -> None:
    """The start fails with the flag that was handed in, and there is nothing to close."""
    one = server(port=taken_port)
    with pytest.raises(OSError, match="set another port with --http-port"):
        await one.start()
    await one.close()


async def test_a_start_that_fails_later_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops uvicorn at its start is raised, and the port is free again."""

    async def startup(*_: object) -> None:
        raise LookupError("a part is missing")

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    one = server()
    with pytest.raises(LookupError, match="a part is missing"):
        await one.start()
    listen("127.0.0.1", one.port, "--port").close()


async def test_signals_stay_the_processs_own() -> None:
    """Starting and stopping the server leaves the handlers of the process as they were."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    one = server()
    await one.start()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    await one.close()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_closing_frees_the_port() -> None:
    """After closing nothing listens there, also while a client kept its connection open."""
    one = server()
    await one.start()
    _, writer = await asyncio.open_connection("127.0.0.1", one.port)
    await one.close()
    writer.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", one.port)) != 0


async def test_what_never_started() -> None:
    """A server that was not started has ended, and has nothing to close."""
    one = server()
    await one.ended()
    await one.close()


async def test_ipv6() -> None:
    """It listens on ::1 as well, and leaves the same port of IPv4 alone."""
    one = server("::1")
    try:
        await one.start()
    except OSError:
        pytest.skip("no IPv6 loopback on this machine")
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"http://[::1]:{one.port}/")).text == "hello"
    await one.close()
