"""Starts sandbox workers confined: gives the engine a program to start in place of the worker.

The program is a script in memory, since a directory may forbid execution. It runs ``worker_confinement.py``, which
executes the worker.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import structlog

from . import worker_confinement

_LIBRARY: Final = re.compile(r"(?:=> )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
"""A line of the dynamic loader: ``libc.so.6 => /lib/libc.so.6 (0x…)``."""
_LIBRARY_DIRECTORIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
"""Readable if the loader does not list the libraries that the worker needs."""
_LOADER_FILES: Final = ("/etc/ld.so.cache", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path")
_LOADER_S: Final = 5.0

_log = structlog.get_logger(__name__)


class WorkerLauncher:
    """A program that starts ``binary`` confined; it exists at ``path`` until closed.

    ``memory_bytes`` and ``cpu_s`` limit the address space and the CPU time of each process.
    """

    def __init__(self, binary: str, *, memory_bytes: int, cpu_s: int) -> None:
        words = [sys.executable, "-I", "-S", worker_confinement.__file__, str(memory_bytes), str(cpu_s), binary]
        script = f'#!/bin/sh\nexec {shlex.join([*words, *needed_files(binary), "--"])} "$@"\n'
        self._descriptor = os.memfd_create("sandbox-worker")
        os.write(self._descriptor, script.encode())
        self.path: Final = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        """Executable by this user."""

    def close(self) -> None:
        """Running workers continue; no new ones can start."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def needed_files(binary: str) -> list[str]:
    """Returns the libraries that the dynamic loader maps for a program, or directories of libraries if it cannot tell.

    Blocks for some milliseconds.
    """
    # As `ldd` does. A loader that does not know the variable starts the program, which finds no input.
    trace = {"LD_TRACE_LOADED_OBJECTS": "1"}
    try:
        loaded = subprocess.run(  # noqa: S603 - the engine's own binary
            [binary], env=trace, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LOADER_S, check=False
        )
    except subprocess.TimeoutExpired:
        return [*_LIBRARY_DIRECTORIES, *_LOADER_FILES]
    libraries = _LIBRARY.findall(loaded.stdout.decode(errors="replace"))
    return [*(libraries or _LIBRARY_DIRECTORIES), *_LOADER_FILES]


def launcher_for(binary: str, *, memory_bytes: int, cpu_s: int) -> WorkerLauncher | None:
    """Returns a launcher; None if this system confines no processes, or forbids programs in memory."""
    if not hasattr(os, "memfd_create"):
        return None
    launcher = WorkerLauncher(binary, memory_bytes=memory_bytes, cpu_s=cpu_s)
    if os.access(launcher.path, os.X_OK) and Path("/bin/sh").exists():
        return launcher
    launcher.close()
    _log.warning("sandbox workers run unconfined: the system forbids programs in memory")
    return None
