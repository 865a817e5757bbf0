"""``toold.toml`` as commands change it: which file a daemon reads, its text, and the check before it is written."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from ..daemon import Settings, SettingsError, load_settings
from ..daemon.config.setting_sources import config_places
from ..protocol.daemon_address import CONFIG_FILE, default_state_dir
from .daemon_connection import CommandFailedError
from .editors import RefusedFileError, change_table, parse_toml, set_key
from .file_changes import content, write
from .operator_client import operator_request, running_pid

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file, its text, and the daemon that reads it."""

    path: Path
    before: str | None
    """None if the file does not exist."""
    report: Mapping[str, Any] | None = None
    """The report on the running daemon's settings; None if none runs."""

    @property
    def text(self) -> str:
        """The text to change: the file's, or the template's."""
        return template() if self.before is None else self.before

    @property
    def reader(self) -> str:
        """A sentence that says which daemon reads the file."""
        if self.report is not None:
            return "The running daemon loads it within seconds."
        if self.path == state_file().resolve():
            return "The next daemon that starts reads it."
        return f"`toold serve` in {self.path.parent} reads it."

    def values(self) -> Mapping[str, Any]:
        """The settings in the file.

        Raises:
            CommandFailedError: it is not TOML.
        """
        return self._edited(lambda: parse_toml(self.text))

    def with_key(self, name: str, value: object) -> str:
        """The text with this setting. Raises the same error as ``values``, also if the file has the setting in a form
        that cannot be replaced."""
        return self._edited(lambda: set_key(self.text, name, value))

    def with_table(self, text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
        """``text`` with this table, or without it if the value is None. Raises the same errors as ``with_key``."""
        return self._edited(lambda: change_table(text, keys, value))

    def check(self, text: str) -> Settings:
        """The settings that the file would have with this text.

        Raises:
            CommandFailedError: a setting would be invalid.
        """
        try:
            return load_settings(
                {"config": str(self.path)},
                env=_without_settings(os.environ),
                cwd=next(path for path in self.path.parents if path.exists()),  # the state directory may not exist yet
                config_text=text,
            )
        except SettingsError as error:
            raise CommandFailedError(f"{self.path} is unchanged: {error}") from None

    def state_dir(self) -> Path:
        """The state directory of the daemon that reads the file. Raises the same error as ``check``."""
        if self.report is not None:
            return Path(self.report["settings"]["state_dir"]["value"])
        return self.check(self.text).state_dir

    def toolsets(self) -> list[str]:
        """The configured toolsets of the daemon that reads the file. Raises like ``check``."""
        if self.report is not None:
            names = self.report["settings"]["toolsets"]["value"]
            return [] if names == "none" else names.split(", ")
        return list(self.check(self.text).toolsets)

    def write(self, text: str) -> None:
        """Replace the file, after a backup of the existing one. Raises ``CommandFailedError``."""
        self.make_directory()
        write(self.path, self.before, text)

    def make_directory(self) -> None:
        """Create the file's directory, as the daemon makes its state directory, if it does not exist."""
        with suppress(OSError):  # the write reports it
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _edited(self, edit: Callable[[], T]) -> T:
        try:
            return edit()
        except RefusedFileError as refused:
            raise CommandFailedError(f"{self.path} is unchanged: {refused}") from None


def find_settings_file(named: str | None = None) -> SettingsFile:
    """The settings file that a command changes.

    That is ``named``; otherwise the running daemon's file; otherwise the file of a daemon started here:
    ``TOOLD_CONFIG``, ``./toold.toml`` if it exists, or the state directory's.

    Raises:
        CommandFailedError: it cannot be read.
    """
    report = None if named else _report()
    if named:
        path = Path.cwd() / named
    elif report is not None and report["config"] is not None:
        path = Path(report["config"])
    else:
        places = config_places({}, os.environ, Path.cwd())
        path = next((place for place in places if place.exists()), places[-1])
    path = path.resolve()  # a symbolic link stays; its target is changed
    return SettingsFile(path, content(path), report)


def state_file() -> Path:
    """The settings file of the state directory, for daemons whose working directory has none."""
    return Path.cwd() / default_state_dir(os.environ) / CONFIG_FILE


def template() -> str:
    """A settings file in which every setting is commented out."""
    return files(__package__).joinpath("settings_template.toml").read_text("utf-8")


def _report() -> Mapping[str, Any] | None:
    try:
        if running_pid(Path.cwd() / default_state_dir(os.environ)) is None:
            return None
        return operator_request("GET", "/settings")
    except (CommandFailedError, OSError) as error:
        raise CommandFailedError(
            f"a daemon runs, but does not say which settings file it reads: {error}; name the file with --config"
        ) from None


def _without_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings, except for the state directory: the daemon that reads the file has other
    settings."""
    return {name: value for name, value in env.items() if name == "TOOLD_STATE_DIR" or not name.startswith("TOOLD_")}
