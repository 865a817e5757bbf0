"""The doctor's checks of editors in which toold is registered."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...daemon import CheckResult
from ...protocol.daemon_address import default_state_dir
from .editor_table import EDITORS, EditorFile, locate
from .server_entry import RefusedFileError


def check_editors(state_dir: Path, *, platform: str, home: Path, env: Mapping[str, str]) -> list[CheckResult]:
    """One check per editor whose file has an entry for toold or cannot be parsed."""
    files = [locate(editor, platform=platform, home=home, env=env) for editor in EDITORS]
    return [check for file in files for check in _checks(file, state_dir)]


def _checks(file: EditorFile, state_dir: Path) -> Iterator[CheckResult]:
    name, reinstall = file.editor.name, f"toold install {file.editor.name}"
    try:
        found: Any = file.editor.parse(file.path.read_bytes().decode("utf-8"))
    except OSError:
        return  # the editor is not installed
    except (RefusedFileError, UnicodeDecodeError) as error:
        reason = error if isinstance(error, RefusedFileError) else "it is not UTF-8 text"
        yield CheckResult(name, "warn", f"{file.path}: {reason}", "fix the file")
        return
    for key in file.keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return
    command = found.get("command") if isinstance(found, dict) else None
    if not isinstance(command, str) or not _is_executable(command):
        yield CheckResult(name, "warn", f"{file.path} names a missing command: {command!r}", f"run: {reinstall}")
        return
    variables = found.get("env")
    directory = default_state_dir(variables if isinstance(variables, dict) else {})
    if directory != state_dir:
        message = f"{file.path} uses the daemon of {directory}, not of {state_dir}"
        yield CheckResult(name, "warn", message, f"run: {reinstall}; or set TOOLD_STATE_DIR here to that directory")
        return
    yield CheckResult(name, "ok", f"{file.path} starts {command}")


def _is_executable(command: str) -> bool:
    return os.access(command, os.X_OK) if os.sep in command else shutil.which(command) is not None
