"""The environment of a daemon that a test starts as a process."""

import os
from pathlib import Path
from typing import Final

_FOREIGN: Final = ("TOOLD_", "EXAI_", "KIMI_", "MOONSHOT_", "GLM_", "ZHIPUAI_", "SUPABASE_")


def daemon_environment(state: Path, **settings: str) -> dict[str, str]:
    """This process's environment without the variables that configure a daemon, with this state directory.

    There is no warm-up: most daemons of tests call no vendor, and importing the SDKs doubles the cost of their start.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return {**inherited, "TOOLD_STATE_DIR": str(state), "TOOLD_WARM_UP": "false", **settings}
