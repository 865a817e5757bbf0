"""How the end of a connection is told."""

import pytest
import websockets
from toold.client.client_errors import ConnectionFailedError, ConnectionLostError, closed_with, describe_close
from websockets.frames import Close


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (1012, "", "1012 (the daemon is restarting; connect again)"),
        (4003, "bad token", "4003 bad token (the token is not accepted; `toold token` prints the daemon's)"),
        (4999, "for fun", "4999 for fun"),
    ],
)
def test_a_close_code_is_said_in_words(code: int, reason: str, said: str) -> None:
    """The code stands first, then the peer's reason, then what it means where the protocol says so."""
    assert describe_close(code, reason) == said


def test_the_side_that_closed_first_is_named() -> None:
    """Code and reason are those of whoever began; 1006 where nobody said a word."""
    theirs, ours = Close(1012, "theirs"), Close(1009, "ours")
    assert closed_with(websockets.ConnectionClosedError(theirs, ours, True)) == (1012, "theirs")
    assert closed_with(websockets.ConnectionClosedError(theirs, ours, False)) == (1009, "ours")
    assert closed_with(websockets.ConnectionClosedError(None, ours)) == (1009, "ours")
    assert closed_with(websockets.ConnectionClosedError(theirs, None)) == (1012, "theirs")
    assert closed_with(websockets.ConnectionClosedError(None, None)) == (1006, "")


def test_both_errors_are_connection_errors() -> None:
    """Who catches Python's own ConnectionError (or OSError) catches these."""
    assert isinstance(ConnectionFailedError("x", retryable=True), ConnectionError)
    assert isinstance(ConnectionLostError("x", executed="no"), ConnectionError)
