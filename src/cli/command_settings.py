"""The settings of a command, and how services and editors start toold with the same settings."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from ..daemon import Settings, SettingsError, load_settings
from ..protocol.daemon_address import CONFIG_FILE, default_state_dir
from ..tools import shipped_toolsets
from .terminal_output import say


class WrongSettingError(click.ClickException):
    """A setting in the environment or toold.toml is invalid: exit code 2 and one line, without the usage text."""

    exit_code = 2

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """Print the error with the prefix of all failures to start."""
        say(f"toold: cannot start: {self.message}", err=True)


def settings_with(flags: Mapping[str, object]) -> Settings:
    """The settings from defaults, ``toold.toml``, the environment and these flags; None for a flag that is not given.

    Raises:
        click.UsageError: a flag is invalid.
        WrongSettingError: another setting is invalid.
    """
    try:
        return load_settings(flags, cwd=Path.cwd())
    except SettingsError as error:
        raise (click.UsageError if error.by_flag else WrongSettingError)(str(error)) from error


def warn_unknown_toolsets(toolsets: Iterable[str], configured: Iterable[str]) -> None:
    """Print a note for each toolset that is neither shipped nor ``configured``; the daemon may have others."""
    known = [*shipped_toolsets(), *configured]
    for name in toolsets:
        if name not in known:
            say(f"note: toolset {name!r} is not configured here; known: {', '.join(known)}.", err=True)


def toold_program() -> tuple[str, ...]:
    """The ``toold`` program next to the running interpreter."""
    program = Path(sys.executable).with_name("toold")
    return (str(program),) if program.exists() else (sys.executable, "-m", "toold")


def toold_environment(settings: Settings) -> dict[str, str]:
    """The variables with which toold finds the same state directory and settings from any directory."""
    config = {} if settings.config is None else {"TOOLD_CONFIG": str(settings.config)}
    return {"TOOLD_STATE_DIR": str(settings.state_dir), **config}


def required_environment(state_dir: Path, config: Path | None) -> dict[str, str]:
    """The variables with which ``toold mcp`` finds this state directory and starts a daemon with this settings file,
    without those that it does not need. None means that there is no settings file."""
    variables = {}
    if state_dir != default_state_dir({}):
        variables["TOOLD_STATE_DIR"] = str(state_dir)
    if config is not None and config != (state_dir / CONFIG_FILE).resolve():
        variables["TOOLD_CONFIG"] = str(config)
    return variables
