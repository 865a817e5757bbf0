"""The running process: settings, assembly, start, drain.

Who calls it: the command line, and tests that run a daemon. What it knows: every room below it, and how they are
joined. What it must never know: what a vendor's SDK looks like, or what a tool does.
"""

from .check import Check
from .doctor import diagnose
from .run import run
from .setting_sources import SettingsError, load_settings
from .settings import Settings
from .state import AlreadyRunningError, StateError, StateFolder, read_address

__all__ = [
    "AlreadyRunningError",
    "Check",
    "Settings",
    "SettingsError",
    "StateError",
    "StateFolder",
    "diagnose",
    "load_settings",
    "read_address",
    "run",
]
