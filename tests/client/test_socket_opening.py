"""Opening a connection: every failure says what was wrong and how to fix it."""

import asyncio
import errno
import json
import socket
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.daemon import free_port
from toold.client import ConnectionFailedError, MCPWebSocketClient, socket_opening
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response


async def failure(client: MCPWebSocketClient) -> ConnectionFailedError:
    """Return the error of the client's single attempt."""
    assert not await client.connect(max_retries=1)
    assert isinstance(client.last_error, ConnectionFailedError)
    assert not client.connected
    return client.last_error


async def test_a_refused_connection_names_the_address() -> None:
    """The error names the address and is retryable."""
    port = free_port()
    failed = await failure(MCPWebSocketClient(port=port))
    assert str(failed) == f"no daemon answers at ws://127.0.0.1:{port}/: connection refused"
    assert failed.retryable
    assert failed.not_listening
    assert failed.__suppress_context__  # an uncaught error has one short traceback


async def test_without_an_announcement_no_connection_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a token in the state directory but no address, the client waits for a daemon."""
    (tmp_path / "token").write_text("of the directory")
    monkeypatch.setenv("TOOLD_STATE_DIR", str(tmp_path))
    for name in ("TOOLD_HOST", "TOOLD_PORT", "TOOLD_TOKEN", "EXAI_WS_HOST", "EXAI_WS_PORT", "EXAI_WS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket_opening, "connect", None)
    failed = await failure(MCPWebSocketClient())
    assert "no daemon announces itself" in str(failed)
    assert failed.retryable


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (OSError(errno.ECONNREFUSED, "no"), True),
        (OSError(errno.EHOSTUNREACH, "no"), False),
        (OSError(f"Multiple exceptions: [Errno {errno.ECONNREFUSED}] a, [Errno {errno.ECONNREFUSED}] b"), True),
        (OSError(f"Multiple exceptions: [Errno {errno.ECONNREFUSED}] a, [Errno {errno.EHOSTUNREACH}] b"), False),
        (OSError("something else"), False),
    ],
)
def test_a_refusal_requires_that_every_address_refused(error: OSError, refusal: bool) -> None:
    """A name such as localhost has two addresses, and both must refuse."""
    assert socket_opening.is_refusal(error) is refusal


async def test_an_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the host and the resolver's message."""

    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    failed = await failure(MCPWebSocketClient("nobody.invalid", 1))
    assert str(failed) == "no daemon answers at ws://nobody.invalid:1/: Name or service not known"


async def test_an_invalid_host_is_not_retried() -> None:
    """For example, a host with a label of more than 63 letters."""
    failed = await failure(MCPWebSocketClient("a" * 64, 1))
    assert "a" * 64 in str(failed)
    assert not failed.retryable


async def answered_over_http(status: HTTPStatus) -> ConnectionFailedError:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(status, "no")

    async def never(connection: ServerConnection) -> None:
        raise AssertionError

    async with serve(never, "127.0.0.1", 0, process_request=refuse) as server:
        return await failure(MCPWebSocketClient(port=server.sockets[0].getsockname()[1]))


async def test_an_http_status_is_named() -> None:
    """503 is a daemon that starts or stops and is retryable; others are not."""
    busy = await answered_over_http(HTTPStatus.SERVICE_UNAVAILABLE)
    assert "HTTP 503" in str(busy)
    assert busy.retryable
    assert busy.busy
    behind = await answered_over_http(HTTPStatus.BAD_GATEWAY)  # a proxy whose daemon restarts
    assert behind.retryable
    wrong = await answered_over_http(HTTPStatus.NOT_FOUND)
    assert "HTTP 404" in str(wrong)
    assert not wrong.retryable


async def test_another_protocol_is_not_a_daemon() -> None:
    """The error says that the server is not a daemon."""

    async def smtp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail\r\n")
        writer.close()

    async with await asyncio.start_server(smtp, "127.0.0.1", 0) as server:
        failed = await failure(MCPWebSocketClient(port=server.sockets[0].getsockname()[1]))
    assert "is not a daemon" in str(failed)


async def test_a_silent_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence in either handshake is a retryable error."""
    monkeypatch.setattr(socket_opening, "OPEN_TIMEOUT_S", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        failed = await failure(MCPWebSocketClient(port=server.sockets[0].getsockname()[1]))
    assert "did not answer within" in str(failed)

    async def mute(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with serve(mute, "127.0.0.1", 0) as websocket_server:
        failed = await failure(MCPWebSocketClient(port=websocket_server.sockets[0].getsockname()[1]))
    assert "did not answer the hello within" in str(failed)
    assert failed.retryable


async def after_hello(frame: str | bytes | None, close: tuple[int, str] = (1000, "")) -> ConnectionFailedError:
    """The error after a hello that the daemon answers with this frame, or by closing."""

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        if frame is not None:
            await connection.send(frame)
        await connection.close(*close)

    async with serve(handler, "127.0.0.1", 0) as server:
        return await failure(MCPWebSocketClient(port=server.sockets[0].getsockname()[1]))


def refusal(error: dict[str, Any] | None) -> str:
    return json.dumps({"op": "hello_ack", "ok": False, "error": error})


async def test_a_permanently_refused_hello_is_not_retried() -> None:
    """The daemon's error is passed on."""
    error = {"code": "UNAUTHORIZED", "message": "the token is wrong", "executed": "no", "retryable": False}
    failed = await after_hello(refusal(error), (4003, "unauthorized"))
    assert "UNAUTHORIZED: the token is wrong" in str(failed)
    assert not failed.retryable


async def test_the_error_for_a_rejected_token_names_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten variable is the usual cause; its value is not shown."""
    monkeypatch.setenv("TOOLD_TOKEN", "the token of another daemon")
    error = {"code": "UNAUTHORIZED", "message": "The token is wrong.", "executed": "no", "retryable": False}
    failed = await after_hello(refusal(error), (4003, "unauthorized"))
    assert str(failed).endswith("UNAUTHORIZED: The token is wrong. The token in TOOLD_TOKEN was sent; correct it.")
    assert "another daemon" not in str(failed)


async def test_a_temporarily_refused_hello_is_retryable() -> None:
    """The error is retryable if the daemon says so."""
    error = {"code": "OVER_CAPACITY", "message": "full", "executed": "no", "retryable": True}
    assert (await after_hello(refusal(error), (1008, "full"))).retryable


async def test_a_hello_refused_without_a_reason_is_an_error() -> None:
    """An ack with ``ok`` false is an error, even without a reason."""
    assert "no reason" in str(await after_hello(refusal(None)))


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        (4000, False),
        (4001, False),
        (4002, True),
        (4003, False),
        (4004, False),
        (4005, False),
        (1008, True),
        (1012, True),
    ],
)
async def test_a_close_instead_of_an_ack_is_an_error(code: int, retryable: bool) -> None:
    """The error has code and reason; wrong tokens and superseded sessions are not retryable."""
    failed = await after_hello(None, (code, "because"))
    assert f"{code} because" in str(failed)
    assert failed.retryable is retryable


@pytest.mark.parametrize(
    "frame", ["hello", "[1]", '{"op":"pong"}', '{"op":"welcome"}', b'{"op":"hello_ack","ok":true,"session_id":"\xff"}']
)
async def test_a_first_frame_other_than_an_ack_is_an_error(frame: str | bytes) -> None:
    """The error says that the server is not a daemon."""
    assert "protocol" in str(await after_hello(frame))


async def test_ipv6_addresses_are_supported() -> None:
    """An address can be bare or in brackets; the URL has brackets."""
    try:
        probe = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    probe.close()

    async def exchange_hello(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send('{"op":"hello_ack","ok":true}')
        await connection.wait_closed()

    async with serve(exchange_hello, "::1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with MCPWebSocketClient("::1", port) as client:
            assert client.url == f"ws://[::1]:{port}/"
        async with MCPWebSocketClient(f"ws://[::1]:{port}/") as client:
            assert client.connected


async def test_tls_with_a_trusted_certificate(certificate: tuple[Path, Path]) -> None:
    """With the certificate in the client's context; without it the error says what to do."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(*certificate)

    async def exchange_hello(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send('{"op":"hello_ack","ok":true}')
        await connection.wait_closed()

    async with serve(exchange_hello, "127.0.0.1", 0, ssl=server_context) as server:
        port = server.sockets[0].getsockname()[1]
        trusting = ssl.create_default_context(cafile=certificate[0])
        async with MCPWebSocketClient(port=port, tls=trusting) as client:
            assert client.url == f"wss://127.0.0.1:{port}/"
        async with MCPWebSocketClient(f"wss://127.0.0.1:{port}", tls=trusting) as client:
            assert client.connected
        failed = await failure(MCPWebSocketClient(port=port, tls=True))
    assert "not trusted" in str(failed)
    assert "cafile" in str(failed)
    assert not failed.retryable
