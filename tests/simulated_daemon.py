"""The settings of a daemon that runs in the process of its test, with a simulator as its vendors."""

from pathlib import Path
from typing import Final

from toold.providers.simulator import SIMULATOR_KEY, Simulator

TOKEN: Final = "a-token-for-the-tests"


def simulated_environment(state: Path, simulator: Simulator, **settings: str) -> dict[str, str]:
    """The variables that configure the daemon: no SDKs, free ports, this state directory, and ``settings``."""
    return {
        "TOOLD_PORT": "0",
        "TOOLD_HTTP_PORT": "0",
        "TOOLD_STATE_DIR": str(state),
        "TOOLD_TOKEN": TOKEN,
        "TOOLD_GRACE_PERIOD_S": "0.1",
        "TOOLD_KIMI_SDK": "http",
        "TOOLD_GLM_SDK": "http",
        "KIMI_API_KEY": SIMULATOR_KEY,
        "KIMI_BASE_URL": simulator.kimi_base_url,
        "GLM_API_KEY": SIMULATOR_KEY,
        "GLM_BASE_URL": simulator.glm_base_url,
        **settings,
    }
