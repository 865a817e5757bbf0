"""Errors of the connection. If the daemon answers a call with an error, a ``CallError`` is raised instead.

::

    ConnectionError (built in, an OSError)
    ├── ConnectionFailedError   no connection could be made
    └── ConnectionLostError     the connection of a call was lost, or there is none
"""

from typing import Final

import websockets

from ..protocol.error_codes import Executed
from ..protocol.frames import CLOSE_LIMIT, CLOSE_RESTART, CLOSE_STALE, CLOSE_SUPERSEDED, CLOSE_UNAUTHORIZED


class ConnectionFailedError(ConnectionError):
    """The daemon could not be reached, or refused the hello; the message says where, why and how to fix it.

    ``retryable`` is false if the same attempt would fail again, as with a wrong token. ``not_listening`` is true if
    nothing listens at the address; ``busy``, if the listener accepts no clients at present; ``superseded``, if a later
    connection has resumed the session.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        not_listening: bool = False,
        busy: bool = False,
        superseded: bool = False,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.not_listening = not_listening
        self.busy = busy
        self.superseded = superseded


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer arrived.

    ``executed`` is ``no`` if the call was never sent, otherwise ``maybe``: the call may be running, or may have run.
    ``close_code`` is the WebSocket close code (1006 without a close frame), None without a connection.
    """

    def __init__(self, message: str, *, executed: Executed, close_code: int | None = None) -> None:
        super().__init__(message)
        self.executed: Executed = executed
        self.close_code = close_code


_CLOSE_CODES: Final = {
    1000: "closed cleanly",
    1001: "the other side is going away",
    1006: "closed without a close frame",
    CLOSE_LIMIT: "connection limit reached, or this client reads too slowly",
    1009: "a frame exceeded the limit",
    1011: "no answer to keepalive pings, or the daemon failed",
    CLOSE_RESTART: "the daemon is restarting; connect again",
    CLOSE_UNAUTHORIZED: "the token is not accepted; `toold token` prints the daemon's",
    CLOSE_SUPERSEDED: "the session was resumed elsewhere",
    CLOSE_STALE: "a later connection has resumed the session",
}


def describe_close(code: int, reason: str) -> str:
    """Returns a close code with the peer's reason and an explanation."""
    meaning = _CLOSE_CODES.get(code)
    return str(code) + (f" {reason}" if reason else "") + (f" ({meaning})" if meaning else "")


def closed_with(exc: websockets.ConnectionClosed) -> tuple[int, str]:
    """Returns code and reason of the side that closed first; 1006 if neither did."""
    close = exc.rcvd if exc.rcvd_then_sent else exc.sent or exc.rcvd
    return (close.code, close.reason) if close else (1006, "")
