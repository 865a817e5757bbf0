"""From an address to a greeted connection: every way in which it fails says what was wrong and what to do."""

import asyncio
import errno
import json
import socket
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from toold.client import ConnectionFailedError, MCPWebSocketClient, socket_opening
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response


async def failure(client: MCPWebSocketClient) -> ConnectionFailedError:
    """Why the client's one attempt failed."""
    assert not await client.connect(max_retries=1)
    assert isinstance(client.last_error, ConnectionFailedError)
    assert not client.connected
    return client.last_error


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


async def test_where_nobody_listens_the_address_is_named() -> None:
    """A refused connection names the address; trying again may help."""
    port = free_port()
    failed = await failure(MCPWebSocketClient(port=port))
    assert str(failed) == f"no daemon answers at ws://127.0.0.1:{port}/: connection refused"
    assert failed.retryable
    assert failed.not_listening
    assert failed.__suppress_context__  # whoever does not catch it reads one short traceback


async def test_nobody_is_asked_where_no_daemon_announces_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a token in the state directory and no daemon's address, the client waits for one and connects to nobody."""
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
def test_nobody_is_there_only_where_every_address_refused(error: OSError, refusal: bool) -> None:
    """A name such as localhost has two addresses; both must have refused for nobody to be there."""
    assert socket_opening.is_refusal(error) is refusal


async def test_a_host_that_does_not_resolve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is no host's fails with the resolver's words."""

    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    failed = await failure(MCPWebSocketClient("nobody.invalid", 1))
    assert str(failed) == "no daemon answers at ws://nobody.invalid:1/: Name or service not known"


async def test_a_host_that_no_resolver_takes_is_not_tried_again() -> None:
    """A name with a label over 63 letters fails at once, and the message names it."""
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


async def test_an_http_answer_is_said_with_its_status() -> None:
    """503 is a daemon that starts or stops, worth another try; any other status is not the daemon's port."""
    busy = await answered_over_http(HTTPStatus.SERVICE_UNAVAILABLE)
    assert "HTTP 503" in str(busy)
    assert busy.retryable
    assert busy.busy
    behind = await answered_over_http(HTTPStatus.BAD_GATEWAY)  # a proxy whose daemon restarts
    assert behind.retryable
    wrong = await answered_over_http(HTTPStatus.NOT_FOUND)
    assert "HTTP 404" in str(wrong)
    assert not wrong.retryable


async def test_what_speaks_no_websocket_is_no_daemon() -> None:
    """A server that answers with something else is told as such."""

    async def smtp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail\r\n")
        writer.close()

    async with await asyncio.start_server(smtp, "127.0.0.1", 0) as server:
        failed = await failure(MCPWebSocketClient(port=server.sockets[0].getsockname()[1]))
    assert "is not a daemon" in str(failed)


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both handshakes have a bound; past it the connection failed and may be tried again."""
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
    """The failure where the daemon answers the hello with this frame, or closes."""

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        if frame is not None:
            await connection.send(frame)
        await connection.close(*close)

    async with serve(handler, "127.0.0.1", 0) as server:
        return await failure(MCPWebSocketClient(port=server.sockets[0].getsockname()[1]))


def refusal(error: dict[str, Any] | None) -> str:
    return json.dumps({"op": "hello_ack", "ok": False, "error": error})


async def test_a_refused_hello_says_why_and_is_not_tried_again() -> None:
    """The daemon's error is passed on; a wrong token stays wrong."""
    error = {"code": "UNAUTHORIZED", "message": "the token is wrong", "executed": "no", "retryable": False}
    failed = await after_hello(refusal(error), (4003, "unauthorized"))
    assert "UNAUTHORIZED: the token is wrong" in str(failed)
    assert not failed.retryable


async def test_a_refused_token_is_told_with_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that was forgotten in the environment is the usual cause, so the message names it, not its value."""
    monkeypatch.setenv("TOOLD_TOKEN", "the token of another daemon")
    error = {"code": "UNAUTHORIZED", "message": "The token is wrong.", "executed": "no", "retryable": False}
    failed = await after_hello(refusal(error), (4003, "unauthorized"))
    assert str(failed).endswith("UNAUTHORIZED: The token is wrong. The token in TOOLD_TOKEN was sent; correct it.")
    assert "another daemon" not in str(failed)


async def test_a_hello_refused_for_now_may_be_tried_again() -> None:
    """Where the daemon says that a later attempt may do, one is made."""
    error = {"code": "OVER_CAPACITY", "message": "full", "executed": "no", "retryable": True}
    assert (await after_hello(refusal(error), (1008, "full"))).retryable


async def test_a_hello_refused_without_a_reason_is_a_failure_all_the_same() -> None:
    """An ack that says no and nothing else is no connection."""
    assert "no reason" in str(await after_hello(refusal(None)))


@pytest.mark.parametrize(
    ("code", "retryable"),
    [(4000, False), (4001, False), (4002, True), (4003, False), (4004, False), (1008, True), (1012, True)],
)
async def test_a_close_instead_of_an_ack_is_told_by_its_code(code: int, retryable: bool) -> None:
    """The close code and reason stand in the message; wrong tokens and superseded sessions are not tried again."""
    failed = await after_hello(None, (code, "because"))
    assert f"{code} because" in str(failed)
    assert failed.retryable is retryable


@pytest.mark.parametrize(
    "frame", ["hello", "[1]", '{"op":"pong"}', '{"op":"welcome"}', b'{"op":"hello_ack","ok":true,"session_id":"\xff"}']
)
async def test_a_first_frame_that_is_no_ack_is_another_protocol(frame: str | bytes) -> None:
    """What does not answer the hello with hello_ack is no daemon of ours."""
    assert "protocol" in str(await after_hello(frame))


async def test_ipv6_addresses_are_connected_to() -> None:
    """An IPv6 host works bare or in brackets, and stands in brackets in the URL."""
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


async def test_tls_with_a_certificate_that_is_trusted(certificate: tuple[Path, Path]) -> None:
    """With the certificate in the client's context wss works; without, the error says what to do."""
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
