"""When a client comes back after its connection ended. Pure: how the connection ended goes in, and a draw.

A thousand clients lose one daemon in the same moment. So the first pause is drawn from a whole window, and every later
one from the upper half of a window that doubles.
"""

from typing import Final, Literal

from ..protocol.backoff import backoff_s
from ..protocol.frames import CLOSE_LIMIT, CLOSE_NOT_HELLO, CLOSE_NOT_JSON, CLOSE_SUPERSEDED, CLOSE_UNAUTHORIZED

CLOSE_TOO_BIG: Final = 1009
CLOSE_TRY_LATER: Final = 1013

When = Literal["at once", "later", "never"]
"""``at once`` is after the first pause; ``later`` skips the short pauses; ``never`` waits for somebody to ask."""

FIRST_WINDOW_S: Final = 1.0
"""About how long a daemon takes to listen again; 1,000 clients within it are no more than it greets in that time."""
MAX_DELAY_S: Final = 30.0
LATER_STEP: Final = 3
"""Where the pauses of a client begin that is told to come later: 4 to 8 s."""

_NEVER: Final = frozenset({CLOSE_NOT_JSON, CLOSE_NOT_HELLO, CLOSE_UNAUTHORIZED, CLOSE_SUPERSEDED})
_LATER: Final = frozenset({CLOSE_LIMIT, CLOSE_TRY_LATER})


def when_to_return(close_code: int) -> When:
    """What a close code says about coming back; codes that say nothing about it mean at once."""
    if close_code in _NEVER:
        return "never"
    return "later" if close_code in _LATER else "at once"


def outlives(close_code: int) -> bool:
    """Whether the session may be gone on with. After 1009 it may not: the frame that was too long would come again."""
    return close_code not in _NEVER and close_code != CLOSE_TOO_BIG


def reconnect_delay_s(step: int, draw: float) -> float:
    """Returns the seconds before reconnect attempt ``step`` (from 0); ``draw`` is evenly random in [0, 1).

    The first delay is drawn from the whole window: it spreads the clients that lost one daemon in the same moment.
    """
    if step == 0:
        return FIRST_WINDOW_S * draw
    return backoff_s(step, draw, base_s=FIRST_WINDOW_S, cap_s=MAX_DELAY_S)
