"""The running process: settings, assembly, start, drain.

Who calls it: the command line, and tests that run a daemon. What it knows: every room below it, and how they are
joined. What it must never know: what a vendor's SDK looks like, or what a tool does.
"""

from .checks.check_result import CheckResult
from .checks.doctor import diagnose
from .config.setting_sources import SettingsError, load_settings, variables_in
from .config.settings import Settings
from .serve import run

__all__ = [
    "CheckResult",
    "Settings",
    "SettingsError",
    "diagnose",
    "load_settings",
    "run",
    "variables_in",
]
