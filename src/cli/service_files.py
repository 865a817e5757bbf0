"""The files that have the system start the daemon: a systemd user unit, a launchd agent. Pure: text in, text out."""

import math
import plistlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..protocol.daemon_address import ENDING_S

LABEL: Final = "toold"
UNIT: Final = f"{LABEL}.service"
RESTART_AFTER_S: Final = 3


@dataclass(frozen=True, slots=True)
class Start:
    """How the daemon is started: as `toold serve` would from the same directory."""

    command: tuple[str, ...]
    """The program's path, in which systemd itself takes no quotes and backslashes, and plain words."""
    directory: Path
    """Where it starts: the default workspace."""
    environment: dict[str, str]
    grace_period_s: float

    @property
    def stop_s(self) -> int:
        """How long the system waits for the end that it asked for before it kills."""
        return math.ceil(self.grace_period_s + ENDING_S)


def service_file(platform: str, home: Path) -> Path | None:
    """Where this user's service is described on this platform; None where there is none for it."""
    if platform == "linux":
        return home / ".config/systemd/user" / UNIT
    if platform == "darwin":
        return home / "Library/LaunchAgents" / f"{LABEL}.plist"
    return None


def unit(start: Start) -> str:
    """A systemd user unit.

    A wrong setting (exit code 2) is not tried again: only its author can mend it.
    """
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


def agent(start: Start, log: Path) -> bytes:
    """A launchd agent, whose lines go to ``log``."""
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
    """A word as systemd reads it back (systemd.service(5), 'Command lines'; systemd.unit(5), 'Specifiers')."""
    return '"' + _escaped(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
