"""The settings of a command, and how services and editors start toold with the same settings."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from ..daemon import Settings, SettingsError, load_settings
from ..protocol.daemon_address import default_state_dir
from ..tools import shipped_toolsets
from .terminal_output import say


class WrongSettingError(click.ClickException):
    """A setting in the environment or toold.toml is invalid: exit code 2 and one line, without the usage text."""

    exit_code = 2

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """Print the same prefix as every other failure to start."""
        say(f"toold: cannot start: {self.message}", err=True)


def settings_with(flags: Mapping[str, object]) -> Settings:
    """The settings from defaults, ``toold.toml``, the environment and these flags; None means that a flag is not given.

    Raises:
        click.UsageError: a flag is invalid.
        WrongSettingError: another setting is invalid.
    """
    try:
        return load_settings(flags, cwd=Path.cwd())
    except SettingsError as error:
        raise (click.UsageError if error.by_flag else WrongSettingError)(str(error)) from error


def warn_unknown_toolsets(toolsets: Iterable[str], settings: Settings) -> None:
    """Print a note for each toolset that is not configured here; the daemon's configuration may differ."""
    known = [*shipped_toolsets(), *settings.toolsets]
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


def required_environment(settings: Settings) -> dict[str, str]:
    """The variables of ``toold_environment`` that differ from the defaults."""
    variables = toold_environment(settings)
    if settings.state_dir == default_state_dir({}):
        del variables["TOOLD_STATE_DIR"]
    return variables
