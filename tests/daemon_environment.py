"""The environment of a daemon that a test starts as a process."""

import os
from pathlib import Path
from typing import Final

_FOREIGN: Final = (
    "TOOLD_",
    "EXAI_",
    "KIMI_",
    "MOONSHOT_",
    "GLM_",
    "ZHIPUAI_",
    "SUPABASE_",
    "PHOENIX_",
    "LITELLM_",
    "REGISTRY_",
    "OTEL_",
)
_NO_SDKS: Final = {"TOOLD_WARM_UP": "false", "TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http"}


def daemon_environment(state: Path, **settings: str) -> dict[str, str]:
    """This process's environment without the variables that configure a daemon, with this state directory.

    Unless the settings ask for a warm-up, there are no SDKs either: the daemon requests the vendors' model lists after
    its start, and importing the SDKs for it nearly doubles the cost of a start. Most tests' daemons call no vendor.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    sdks = {} if settings.get("TOOLD_WARM_UP") == "true" else _NO_SDKS
    return {**inherited, "TOOLD_STATE_DIR": str(state), **sdks, **settings}
