"""What can go wrong with the connection itself. A call that was answered with an error raises a ``CallError`` instead.

::

    ConnectionError (built in, an OSError)
    ├── ConnectionFailedError   no connection came about
    └── ConnectionLostError     there is no connection any more, or none yet, for the call
"""

from typing import Final

import websockets

from ..protocol.error_codes import Executed
from ..protocol.frames import CLOSE_LIMIT, CLOSE_RESTART, CLOSE_SUPERSEDED, CLOSE_UNAUTHORIZED


class ConnectionFailedError(ConnectionError):
    """The daemon could not be reached, or refused the hello; the message says where, why and what to do.

    ``retryable`` is false where the same attempt can only fail again, such as a wrong token. ``nobody_there`` is true
    where nothing listens at the address, ``busy`` where what listens takes nobody for now.
    """

    def __init__(self, message: str, *, retryable: bool, nobody_there: bool = False, busy: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.nobody_there = nobody_there
        self.busy = busy


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer came.

    ``executed`` is ``no`` where the call was never sent, else ``maybe``: it may be running still, or have run.
    ``close_code`` is WebSocket's (1006 where the peer said nothing), None where no connection stood.
    """

    def __init__(self, message: str, *, executed: Executed, close_code: int | None = None) -> None:
        super().__init__(message)
        self.executed: Executed = executed
        self.close_code = close_code


_CLOSE_CODES: Final = {
    1000: "closed in good order",
    1001: "the other side goes away",
    1006: "it broke without a word",
    CLOSE_LIMIT: "a limit on connections, or this client reads too slowly",
    1009: "a frame was longer than the limit",
    1011: "no answer to keepalive pings, or the daemon failed",
    CLOSE_RESTART: "the daemon restarts, connect again",
    CLOSE_UNAUTHORIZED: "the token is not accepted; `toold token` prints the daemon's",
    CLOSE_SUPERSEDED: "the session was resumed elsewhere",
}


def describe_close(code: int, reason: str) -> str:
    """A close code in words, with the peer's reason and what to do."""
    meaning = _CLOSE_CODES.get(code)
    return str(code) + (f" {reason}" if reason else "") + (f" ({meaning})" if meaning else "")


def closed_with(exc: websockets.ConnectionClosed) -> tuple[int, str]:
    """Code and reason of whichever side closed first; 1006 where none did."""
    close = exc.rcvd if exc.rcvd_then_sent else exc.sent or exc.rcvd
    return (close.code, close.reason) if close else (1006, "")
