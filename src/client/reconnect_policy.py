"""Decides when a client reconnects, by the close code of its connection. Pure: the caller passes the random draw.

A restart of the daemon disconnects all its clients at once, so their first delay is spread over a whole window, and
later delays use exponential backoff.
"""

from typing import Final, Literal

from ..protocol.backoff import backoff_s
from ..protocol.frames import (
    CLOSE_LIMIT,
    CLOSE_NOT_HELLO,
    CLOSE_NOT_JSON,
    CLOSE_STALE,
    CLOSE_SUPERSEDED,
    CLOSE_UNAUTHORIZED,
)

CLOSE_TOO_BIG: Final = 1009
CLOSE_TRY_LATER: Final = 1013

ReconnectWhen = Literal["at once", "later", "never"]
"""``at once``: after the first delay; ``later``: skips the short delays; ``never``: only on request."""

FIRST_WINDOW_S: Final = 1.0
"""The window of the first delay: about the time of a daemon's restart. A daemon can greet 1,000 clients within it."""
MAX_DELAY_S: Final = 30.0
LATER_STEP: Final = 3
"""The first backoff step for ``later``: 4 to 8 s."""

_NO_RECONNECT_CODES: Final = frozenset(
    {CLOSE_NOT_JSON, CLOSE_NOT_HELLO, CLOSE_UNAUTHORIZED, CLOSE_SUPERSEDED, CLOSE_STALE}
)
_DELAYED_RECONNECT_CODES: Final = frozenset({CLOSE_LIMIT, CLOSE_TRY_LATER})


def reconnect_when(close_code: int) -> ReconnectWhen:
    """Returns when to reconnect after this close code; unknown codes mean at once."""
    if close_code in _NO_RECONNECT_CODES:
        return "never"
    return "later" if close_code in _DELAYED_RECONNECT_CODES else "at once"


def session_survives(close_code: int) -> bool:
    """Whether the session can be resumed. False after 1009, because the daemon would redeliver the frame that was too
    long.
    """
    return close_code not in _NO_RECONNECT_CODES and close_code != CLOSE_TOO_BIG


def reconnect_delay_s(step: int, draw: float) -> float:
    """Returns the seconds before reconnect attempt ``step`` (from 0); ``draw`` is a uniform random number in [0, 1).

    The first delay is drawn from the whole window, to spread the clients that lost a daemon at the same moment.
    """
    if step == 0:
        return FIRST_WINDOW_S * draw
    return backoff_s(step, draw, base_s=FIRST_WINDOW_S, cap_s=MAX_DELAY_S)
