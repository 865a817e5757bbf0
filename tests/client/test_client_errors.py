"""Descriptions of how a connection ended."""

import pytest
import websockets
from toold.client.client_errors import ConnectionFailedError, ConnectionLostError, closed_with, describe_close
from websockets.frames import Close


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (1012, "", "1012 (the daemon is restarting; connect again)"),
        (4003, "bad token", "4003 bad token (the token is not accepted; `toold token` prints the daemon's)"),
        (4999, "for fun", "4999 for fun"),
    ],
)
def test_a_close_code_is_described(code: int, reason: str, message: str) -> None:
    """Code, the peer's reason, and the meaning in the protocol."""
    assert describe_close(code, reason) == message


def test_the_close_frame_of_the_side_that_closed_first_is_used() -> None:
    """The close code is 1006 if no close frame was received."""
    theirs, ours = Close(1012, "theirs"), Close(1009, "ours")
    assert closed_with(websockets.ConnectionClosedError(theirs, ours, True)) == (1012, "theirs")
    assert closed_with(websockets.ConnectionClosedError(theirs, ours, False)) == (1009, "ours")
    assert closed_with(websockets.ConnectionClosedError(None, ours)) == (1009, "ours")
    assert closed_with(websockets.ConnectionClosedError(theirs, None)) == (1012, "theirs")
    assert closed_with(websockets.ConnectionClosedError(None, None)) == (1006, "")


def test_both_errors_are_connection_errors() -> None:
    """Handlers of the built-in ConnectionError (or OSError) catch them."""
    assert isinstance(ConnectionFailedError("x", retryable=True), ConnectionError)
    assert isinstance(ConnectionLostError("x", executed="no"), ConnectionError)
