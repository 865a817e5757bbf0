"""Whether the process has a terminal, and how its signals reach the process."""

import os
import signal
from typing import Final

SIGNAL_ECHO_S: Final = 0.5
"""A second signal within this time is a duplicate: the same signal was sent to the process and to its group."""


def has_terminal() -> bool:
    """Whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def ends_with_terminal() -> bool:
    """Whether SIGHUP may mean that the terminal was closed. ``nohup`` ignores it, so that the daemon outlives its
    terminal. Asked before a handler of SIGHUP is installed.
    """
    return signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and has_terminal()
