"""The service files: a systemd user unit and a launchd agent. Pure."""

import math
import plistlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..protocol.daemon_address import SHUTDOWN_MARGIN_S

LABEL: Final = "toold"
UNIT: Final = f"{LABEL}.service"
RESTART_AFTER_S: Final = 3


@dataclass(frozen=True, slots=True)
class StartCommand:
    """The command, directory and environment with which the service starts the daemon."""

    command: tuple[str, ...]
    """The program's path and its arguments. systemd allows no quotes or backslashes in the path."""
    directory: Path
    """The working directory, which is the default workspace."""
    environment: dict[str, str]
    grace_period_s: float

    @property
    def stop_s(self) -> int:
        """The time between the stop signal and the kill."""
        return math.ceil(self.grace_period_s + SHUTDOWN_MARGIN_S)


def service_file(platform: str, home: Path) -> Path | None:
    """The path of this user's service file; None if the platform is not supported."""
    if platform == "linux":
        return home / ".config/systemd/user" / UNIT
    if platform == "darwin":
        return home / "Library/LaunchAgents" / f"{LABEL}.plist"
    return None


def systemd_unit(start: StartCommand) -> str:
    """A systemd user unit. It is not restarted after exit code 2, an invalid setting."""
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in start.environment.items())
    return f"""\
[Unit]
Description=toold, the tool daemon

[Service]
Type=exec
ExecStart={" ".join(map(_quoted, start.command))}
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={_escaped(str(start.directory))}
{environment}Restart=on-failure
RestartSec={RESTART_AFTER_S}
RestartPreventExitStatus=2
TimeoutStopSec={start.stop_s}

[Install]
WantedBy=default.target
"""


def launchd_agent(start: StartCommand, log: Path) -> bytes:
    """A launchd agent that logs to ``log``."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(start.command),
            "WorkingDirectory": str(start.directory),
            "EnvironmentVariables": start.environment,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": RESTART_AFTER_S,
            "ExitTimeOut": start.stop_s,
            "StandardOutPath": str(log),
            "StandardErrorPath": str(log),
        },
        sort_keys=False,
    )


def _quoted(word: str) -> str:
    """A word quoted for systemd (systemd.service(5), 'Command lines'; systemd.unit(5), 'Specifiers')."""
    return '"' + _escaped(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
