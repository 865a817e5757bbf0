"""What the doctor says of the editors that were told of toold."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...daemon import CheckResult
from ...protocol.daemon_address import default_state_dir
from .editor_errors import RefusedFileError
from .editor_table import EDITORS, EditorFile, place_of


def check_editors(state_dir: Path, *, platform: str, home: Path, env: Mapping[str, str]) -> list[CheckResult]:
    """A check for each editor whose file has an entry of toold, or cannot be read."""
    places = [place_of(editor, platform=platform, home=home, env=env) for editor in EDITORS]
    return [check for place in places for check in _checks(place, state_dir)]


def _checks(place: EditorFile, state_dir: Path) -> Iterator[CheckResult]:
    name, again = place.editor.name, f"toold install {place.editor.name}"
    try:
        found: Any = place.editor.read(place.file.read_bytes().decode("utf-8"))
    except OSError:
        return  # the editor is not here
    except (RefusedFileError, UnicodeDecodeError) as error:
        reason = error if isinstance(error, RefusedFileError) else "it is not UTF-8 text"
        yield CheckResult(name, "warn", f"{place.file}: {reason}", "mend the file")
        return
    for key in place.keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return
    command = found.get("command") if isinstance(found, dict) else None
    if not isinstance(command, str) or not _can_be_run(command):
        yield CheckResult(name, "warn", f"{place.file} names a command that is not there: {command!r}", f"run: {again}")
        return
    variables = found.get("env")
    directory = default_state_dir(variables if isinstance(variables, dict) else {})
    if directory != state_dir:
        message = f"{place.file} leads to the daemon of {directory}, not to that of {state_dir}"
        yield CheckResult(name, "warn", message, f"run: {again}; or set TOOLD_STATE_DIR here to the same directory")
        return
    yield CheckResult(name, "ok", f"{place.file} starts {command}")


def _can_be_run(command: str) -> bool:
    return os.access(command, os.X_OK) if os.sep in command else shutil.which(command) is not None
