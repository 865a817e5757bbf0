"""The state directories of workers: below the supervisor's, with links to the shared files."""

import os
from pathlib import Path
from typing import Final

from ...protocol.daemon_address import TOKEN_FILE
from ...tools import EFFECT_LOG
from ..access import TOKENS_FILE
from ..persistence.key_files import KEY_FILES
from ..persistence.state_directory import AUDIT_KEY_FILE, StateError

WORKERS_DIRECTORY: Final = "workers"
LINKED: Final = (TOKEN_FILE, TOKENS_FILE, AUDIT_KEY_FILE, EFFECT_LOG, *KEY_FILES)
"""The files that have the same content for all workers. If a file does not exist yet, the link is dangling."""


def worker_directory(state_dir: Path, number: int) -> Path:
    """The state directory of a worker, made if it does not exist.

    Raises:
        StateError: it cannot be made.
    """
    directory = state_dir / WORKERS_DIRECTORY / str(number)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in LINKED:
            _link(directory / name, Path(os.pardir, os.pardir, name))
    except OSError as error:
        raise StateError(f"the state directory {directory} of a worker cannot be used ({error.strerror})") from None
    return directory


def _link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    path.unlink(missing_ok=True)
    path.symlink_to(target)
