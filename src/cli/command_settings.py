"""The settings of a command, and how a wrong one ends it: with exit code 2, and one line that says where it stands."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from ..daemon import Settings, SettingsError, load_settings
from ..tools import shipped_toolsets


class WrongSettingError(click.ClickException):
    """A setting of the environment or of toold.toml is wrong: the line alone, since no usage would mend it."""

    exit_code = 2

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """In the words that any other hindrance to a start has."""
        click.echo(f"toold: cannot start: {self.message}", err=True)


def settings_with(flags: Mapping[str, object]) -> Settings:
    """The settings of defaults, ``toold.toml``, environment and these flags; None is a flag that was not given.

    Raises:
        click.UsageError: a flag is wrong.
        WrongSettingError: anything else is.
    """
    try:
        return load_settings(flags, cwd=Path.cwd())
    except SettingsError as error:
        raise (click.UsageError if error.by_flag else WrongSettingError)(str(error)) from error


def note_missing(toolsets: Iterable[str], settings: Settings) -> None:
    """Tell of toolsets that the configuration here has not; the daemon's may be another, or not be written yet."""
    there = [*shipped_toolsets(), *settings.toolsets]
    for name in toolsets:
        if name not in there:
            click.echo(f"note: there is no toolset {name!r} in the configuration here: {', '.join(there)}.", err=True)
