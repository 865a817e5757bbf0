"""How others start this command: a service manager, an editor."""

import sys
from pathlib import Path

from ..daemon import Settings
from ..protocol.daemon_address import default_state_dir


def toold() -> tuple[str, ...]:
    """The command beside the interpreter that runs this one."""
    beside = Path(sys.executable).with_name("toold")
    return (str(beside),) if beside.exists() else (sys.executable, "-m", "toold")


def environment(settings: Settings) -> dict[str, str]:
    """The variables by which it finds the same state directory and the same settings, wherever it is started."""
    config = {} if settings.config is None else {"TOOLD_CONFIG": str(settings.config)}
    return {"TOOLD_STATE_DIR": str(settings.state_dir), **config}


def needed(settings: Settings) -> dict[str, str]:
    """Of these, those that say something else than what holds without them."""
    variables = environment(settings)
    if settings.state_dir == default_state_dir({}):
        del variables["TOOLD_STATE_DIR"]
    return variables
