"""The running process: settings, wiring, start and drain. The command line and tests use it. It imports every package
except ``cli`` and ``client``, and does not depend on vendors' SDKs or on what tools do.
"""

from .checks.check_result import CheckResult
from .checks.doctor import diagnose
from .config.setting_sources import SettingsError, load_settings, variables_in
from .config.settings import Settings
from .config.settings_report import settings_report
from .serve import run, run_workers
from .workers.worker_slot import slot_in

__all__ = [
    "CheckResult",
    "Settings",
    "SettingsError",
    "diagnose",
    "load_settings",
    "run",
    "run_workers",
    "settings_report",
    "slot_in",
    "variables_in",
]
