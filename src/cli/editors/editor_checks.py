"""The doctor's checks of editors in which toold is registered."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...daemon import CheckResult, SettingsError, load_settings
from ...protocol.daemon_address import CONFIG_FILE, default_state_dir
from .editor_table import EDITORS, EditorFile, locate
from .server_entry import RefusedFileError


def check_editors(
    state_dir: Path, *, daemon_file: Path | None, platform: str, home: Path, env: Mapping[str, str]
) -> list[CheckResult]:
    """One check per editor whose file has an entry for toold or cannot be parsed, and one if their entries disagree.

    ``daemon_file`` is the settings file of the daemon that runs in ``state_dir``; None if none runs.
    """
    checks: list[CheckResult] = []
    entries: list[_Entry] = []
    for editor in EDITORS:
        file = locate(editor, platform=platform, home=home, env=env)
        try:
            found = _entry_in(file)
        except RefusedFileError as error:
            checks.append(CheckResult(editor.name, "warn", f"{file.path}: {error}", "fix the file"))
            continue
        if found is not None:
            checks.append(_check(found, state_dir, daemon_file))
            entries.append(found)
    return [*checks, *_disagreement(entries, state_dir)]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An editor's entry for toold."""

    editor: str
    path: Path
    command: object
    variables: Mapping[str, str]

    @property
    def state_dir(self) -> Path:
        return default_state_dir(self.variables)

    @property
    def settings_file(self) -> Path:
        """The settings file of a daemon that the editor starts, whether or not it exists."""
        return self.state_dir / (self.variables.get("TOOLD_CONFIG") or CONFIG_FILE)

    @property
    def reinstall(self) -> str:
        return f"run: toold install {self.editor}"


def _entry_in(file: EditorFile) -> _Entry | None:
    """The entry; None if the editor is not installed or has no entry."""
    try:
        found: Any = file.editor.parse(file.path.read_bytes().decode("utf-8"))
    except OSError:
        return None
    except UnicodeDecodeError:
        raise RefusedFileError("it is not UTF-8 text") from None
    for key in file.keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return None
    entry = found if isinstance(found, dict) else {}
    variables = entry.get("env")
    texts = {name: str(value) for name, value in variables.items()} if isinstance(variables, dict) else {}
    return _Entry(file.editor.name, file.path, entry.get("command"), texts)


def _check(entry: _Entry, state_dir: Path, daemon_file: Path | None) -> CheckResult:
    name, path = entry.editor, entry.path
    if not isinstance(entry.command, str) or not _is_executable(entry.command):
        return CheckResult(name, "warn", f"{path} names a missing command: {entry.command!r}", entry.reinstall)
    if entry.state_dir != state_dir:
        message = f"{path} uses the daemon of {entry.state_dir}, not of {state_dir}"
        remedy = f"{entry.reinstall}; or set TOOLD_STATE_DIR here to that directory"
        return CheckResult(name, "warn", message, remedy)
    problem = _settings_problem(entry)
    if problem is not None:
        message = f"a daemon that it starts would fail: {problem}"
        return CheckResult(name, "fail", message, f"fix {entry.settings_file}, or {entry.reinstall}")
    if daemon_file is not None and entry.settings_file.resolve() != daemon_file.resolve():
        message = f"{path} starts a daemon with {entry.settings_file}, but the running one reads {daemon_file}"
        return CheckResult(name, "warn", message, entry.reinstall)
    return CheckResult(name, "ok", f"{path} starts {entry.command}")


def _settings_problem(entry: _Entry) -> str | None:
    """Why a daemon that the editor starts would refuse its settings."""
    directory = next(path for path in (entry.state_dir, *entry.state_dir.parents) if path.exists())
    try:
        load_settings({}, env={**entry.variables, "TOOLD_STATE_DIR": str(entry.state_dir)}, cwd=directory)
    except SettingsError as error:
        return str(error)
    return None


def _disagreement(entries: Sequence[_Entry], state_dir: Path) -> Iterator[CheckResult]:
    """A warning if the first editor that starts the daemon would decide its settings."""
    files = {entry.editor: entry.settings_file for entry in entries if entry.state_dir == state_dir}
    if len({file.resolve() for file in files.values()}) > 1:
        listed = ", ".join(f"{editor}: {file}" for editor, file in files.items())
        message = f"their entries lead to different settings files ({listed}); the one that starts the daemon decides"
        yield CheckResult("editors", "warn", message, f"run toold install for each of {', '.join(files)}")


def _is_executable(command: str) -> bool:
    return os.access(command, os.X_OK) if os.sep in command else shutil.which(command) is not None
