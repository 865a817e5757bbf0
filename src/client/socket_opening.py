"""Opens a WebSocket to the daemon and exchanges the hello; explains failures."""

import asyncio
import errno
import re
import ssl
from typing import Final, cast

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection, connect

from ..protocol.error_codes import CallError, ErrorCode, ProtocolError, error_from_wire
from ..protocol.frames import HelloAck, decode_server_frame
from .client_errors import ConnectionFailedError, closed_with, describe_close
from .daemon_endpoint import DaemonEndpoint
from .reconnect_policy import reconnect_when

OPEN_TIMEOUT_S: Final = 10.0
"""The timeout of the TCP, TLS and WebSocket handshakes together, and again of the hello."""
CLOSE_TIMEOUT_S: Final = 5.0

_STARTING: Final = frozenset({502, 503, 504})
"""503 comes from the daemon; the others, from a proxy that cannot reach it."""


class OpenSocket(ClientConnection):
    """A WebSocket that records whether any data arrived, even part of a frame."""

    received_data = False
    """Set when bytes arrive; the reader of this flag resets it."""

    def data_received(self, data: bytes) -> None:
        self.received_data = True
        super().data_received(data)


async def open_socket(
    endpoint: DaemonEndpoint, *, tls_context: ssl.SSLContext | None, max_message_size: int
) -> OpenSocket:
    """Opens a WebSocket to the endpoint.

    Raises:
        ConnectionFailedError: nothing listens, the server does not speak WebSocket, or its certificate is not trusted.
    """
    if endpoint.unannounced:
        raise ConnectionFailedError(
            "no daemon announces itself in the state directory: start it with `toold serve`, "
            "name its directory in TOOLD_STATE_DIR, or its port",
            retryable=True,
        )
    try:
        socket = await connect(
            endpoint.url,
            create_connection=OpenSocket,
            ssl=(tls_context or ssl.create_default_context()) if endpoint.tls else None,
            compression=None,
            proxy=None,  # the token is for the daemon only
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=None,  # ``client_connection`` has a heartbeat
            max_size=max_message_size,
        )
        return cast("OpenSocket", socket)
    except ssl.SSLCertVerificationError as exc:
        raise ConnectionFailedError(
            f"the certificate of {endpoint.url} is not trusted ({exc.verify_message}); "
            "pass tls=ssl.create_default_context(cafile=…) or set SSL_CERT_FILE",
            retryable=False,
        ) from exc
    except TimeoutError as exc:
        raise ConnectionFailedError(
            f"{endpoint.url} did not answer within {OPEN_TIMEOUT_S:g} s", retryable=True
        ) from exc
    except OSError as exc:
        refused = is_refusal(exc)
        reason = "connection refused" if refused else exc.strerror or exc
        message = f"no daemon answers at {endpoint.url}: {reason}"
        raise ConnectionFailedError(message, retryable=True, not_listening=refused) from None  # the message is complete
    except UnicodeError as exc:  # from the resolver, for invalid names
        raise ConnectionFailedError(f"{endpoint.url} is not an address: {exc}", retryable=False) from exc
    except websockets.InvalidStatus as exc:
        status = exc.response.status_code
        raise ConnectionFailedError(
            f"{endpoint.url} refused the connection with HTTP {status}"
            + (": it is starting or stopping" if status in _STARTING else ": is this the daemon's WebSocket port?"),
            retryable=status in _STARTING,
            busy=status in _STARTING,
        ) from exc
    except websockets.WebSocketException as exc:
        raise ConnectionFailedError(f"the server at {endpoint.url} is not a daemon: {exc}", retryable=True) from exc


def is_refusal(error: OSError) -> bool:
    """Whether nothing listens. For a name with several addresses, asyncio joins their errors into one text."""
    if error.errno is not None:
        return error.errno == errno.ECONNREFUSED
    codes = re.findall(r"\[Errno (\d+)\]", str(error))
    return bool(codes) and set(codes) == {str(errno.ECONNREFUSED)}


async def exchange_hello(socket: ClientConnection, endpoint: DaemonEndpoint, hello: bytes) -> HelloAck:
    """Sends the hello and returns the ack, which has ``ok`` true.

    Raises:
        ConnectionFailedError: the daemon refused, or the server is not a daemon.
    """
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            await socket.send(hello, text=True)
            ack = decode_server_frame(await socket.recv(decode=False))
    except TimeoutError as exc:
        message = f"{endpoint.url} did not answer the hello within {OPEN_TIMEOUT_S:g} s"
        raise ConnectionFailedError(message, retryable=True) from exc
    except websockets.ConnectionClosed as exc:
        code, reason = closed_with(exc)
        when = reconnect_when(code)
        message = f"{endpoint.url} closed the connection during the hello: {describe_close(code, reason)}"
        raise ConnectionFailedError(message, retryable=when != "never", busy=when == "later") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        message = f"the server at {endpoint.url} does not speak the daemon's protocol: {exc}"
        raise ConnectionFailedError(message, retryable=False) from exc
    if not isinstance(ack, HelloAck):
        message = (
            f"the server at {endpoint.url} does not speak the daemon's protocol: its first frame is not a hello_ack"
        )
        raise ConnectionFailedError(message, retryable=False)
    if not ack.ok:
        error: CallError = error_from_wire(ack.error) if ack.error else ProtocolError("The daemon gave no reason.")
        message = f"{endpoint.url} refused the hello: {error.code.value}: {error.message}"
        if error.code is ErrorCode.UNAUTHORIZED:
            message += f" {endpoint.token_source}"
        superseded = error.code is ErrorCode.PROTOCOL_ERROR and "n" in (error.details or {})
        raise ConnectionFailedError(
            message, retryable=error.retryable, busy=error.retryable, superseded=superseded
        ) from error
    return ack
