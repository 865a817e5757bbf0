"""From an address to a greeted WebSocket: what can go wrong on the way, in words."""

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
from .reconnect_policy import when_to_return

OPEN_TIMEOUT_S: Final = 10.0
"""For the TCP, TLS and WebSocket handshakes, and again for the hello."""
CLOSE_TIMEOUT_S: Final = 5.0

_STARTING: Final = frozenset({502, 503, 504})
"""503 is the daemon's own; the others are a proxy's that does not reach it."""


class OpenSocket(ClientConnection):
    """A WebSocket that tells whether anything came by it, a part of a frame too."""

    heard = False
    """Set when bytes come; whoever wants to know takes it back before."""

    def data_received(self, data: bytes) -> None:
        self.heard = True
        super().data_received(data)


async def open_socket(
    endpoint: DaemonEndpoint, *, tls_context: ssl.SSLContext | None, max_message_size: int
) -> OpenSocket:
    """A WebSocket to the endpoint, before any frame.

    Raises:
        ConnectionFailedError: nobody is there, or it is no WebSocket server, or its certificate is not trusted.
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
            proxy=None,  # the token is for the daemon alone
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=None,  # ``connection`` has a heartbeat of its own
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
        raise ConnectionFailedError(message, retryable=True, nobody_there=refused) from None  # the message has it all
    except UnicodeError as exc:  # from the resolver, for names that no host can have
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
        raise ConnectionFailedError(f"what answers at {endpoint.url} is no daemon: {exc}", retryable=True) from exc


def is_refusal(error: OSError) -> bool:
    """Whether nobody listens; a name of several addresses makes asyncio put all their errors into one text."""
    if error.errno is not None:
        return error.errno == errno.ECONNREFUSED
    codes = re.findall(r"\[Errno (\d+)\]", str(error))
    return bool(codes) and set(codes) == {str(errno.ECONNREFUSED)}


async def greet(socket: ClientConnection, endpoint: DaemonEndpoint, hello: bytes) -> HelloAck:
    """Say hello and read the ack, which has ``ok`` true.

    Raises:
        ConnectionFailedError: the daemon refused, or it is none.
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
        when = when_to_return(code)
        message = f"{endpoint.url} closed the connection at the hello: {describe_close(code, reason)}"
        raise ConnectionFailedError(message, retryable=when != "never", busy=when == "later") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        message = f"what answers at {endpoint.url} does not speak the daemon's protocol: {exc}"
        raise ConnectionFailedError(message, retryable=False) from exc
    if not isinstance(ack, HelloAck):
        message = (
            f"what answers at {endpoint.url} does not speak the daemon's protocol: its first frame is no hello_ack"
        )
        raise ConnectionFailedError(message, retryable=False)
    if not ack.ok:
        error: CallError = error_from_wire(ack.error) if ack.error else ProtocolError("The daemon gave no reason.")
        message = f"{endpoint.url} refused the hello: {error.code.value}: {error.message}"
        if error.code is ErrorCode.UNAUTHORIZED:
            message += f" {endpoint.token_source}"
        raise ConnectionFailedError(message, retryable=error.retryable, busy=error.retryable) from error
    return ack
