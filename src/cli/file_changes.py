"""Changes to a user's files: shown as a difference, written atomically, after a backup."""

import difflib
import os
import shutil
from pathlib import Path

from .daemon_connection import CommandFailedError
from .terminal_output import say


def difference(file: Path, before: str, after: str) -> str:
    """The changed lines, without context: the lines around them belong to others and may hold secrets."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), str(file), n=0
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def content(file: Path) -> str | None:
    """The file's text; None if there is no such file.

    Raises:
        CommandFailedError: it cannot be read, or is not UTF-8 text.
    """
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CommandFailedError(f"{file} is unchanged: it is not UTF-8 text; fix it first") from None
    except OSError as error:
        raise CommandFailedError(f"cannot read {file} ({error.strerror})") from None


def write(file: Path, before: str | None, after: str) -> None:
    """Replace the file, whose text was ``before``, with the old file's permissions. A new file is private (mode 600).

    Raises:
        CommandFailedError: it cannot be written, or has changed in the meantime.
    """
    unfinished = file.with_name(f"{file.name}.toold-new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            if content(file) != before:
                raise CommandFailedError(f"{file} has changed in the meantime; run the command again")
            backup = _free_backup_name(file)
            shutil.copy2(file, backup)
            say(f"Backup: {backup}")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:  # noqa: PTH123 - opens a descriptor
            new.write(after.encode())
            new.flush()
            os.fsync(new.fileno())
        if before is not None:
            shutil.copymode(file, unfinished)
        unfinished.replace(file)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CommandFailedError(f"cannot write {file} ({error.strerror})") from None


def _free_backup_name(file: Path) -> Path:
    number = 1
    while (backup := file.with_name(f"{file.name}.bak{number}")).exists():
        number += 1
    return backup
