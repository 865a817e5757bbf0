"""The running process: settings, assembly, start, drain.

Who calls it: the command line, and tests that run a daemon. What it knows: every room below it, and how they are
joined. What it must never know: what a vendor's SDK looks like, or what a tool does.
"""

from .check import Check
from .doctor import diagnose
from .run import run
from .setting_sources import SettingsError, load_settings, variables_in
from .settings import Settings

__all__ = [
    "Check",
    "Settings",
    "SettingsError",
    "diagnose",
    "load_settings",
    "run",
    "variables_in",
]
