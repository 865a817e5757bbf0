"""Starts daemons as forks of a process that has imported toold, so that a test pays for the imports once.

Importing takes two thirds of the CPU time of a daemon's start. A fork is a separate process, like one of
``python -m toold``: with its own id, environment, directory, files, signals and exit code. Tests of the interpreter's
start itself use ``subprocess``. This file is also the program of the process that forks.
"""

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

_POLL_S: Final = 0.01


class ForkedProcess:
    """A forked process, with the methods of ``subprocess.Popen`` that tests use."""

    def __init__(self, server: "_ForkServer", pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the number of the signal that ended it; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.ask({"exit_code_of": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it did not end in time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(_POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _ForkServer:
    """The process that forks, as its client sees it; it ends with its client."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).absolute())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()
        atexit.register(self._close)

    def ask(self, request: Mapping[str, object]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def _close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


_server: _ForkServer | None = None


def fork_toold(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdout: Path,
    stderr: Path | None = None,
    stdin: Path = Path(os.devnull),
) -> ForkedProcess:
    """Start ``toold`` with these arguments, this environment and these files; without ``stderr``, both outputs go to
    ``stdout``.
    """
    global _server  # noqa: PLW0603 - one per process that runs tests
    if _server is None:
        _server = _ForkServer()
    files = [str(stdin), str(stdout), str(stderr or stdout)]
    request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd), "files": files}
    return ForkedProcess(_server, _server.ask(request))


# --- the process that forks ------------------------------------------------------------------------------------------


def _import_toold() -> None:
    for module in ("toold.cli.serve_command", "toold.daemon.serve", "toold.client", "uvicorn", "websockets"):
        importlib.import_module(module)
    importlib.import_module("toold.tools").load_registry()


def _serve() -> dict[str, Any] | None:
    """Answer requests until stdin ends: then return None. Returns a request in the process that was forked for it."""
    for line in sys.stdin.buffer:
        request: dict[str, Any] = json.loads(line)
        if "exit_code_of" in request:
            pid, status = os.waitpid(request["exit_code_of"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            if threading.active_count() != 1:
                raise RuntimeError("importing toold started a thread, so a fork is not safe")
            answer = os.fork()
            if answer == 0:
                return request
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
    return None


def _become_toold(request: Mapping[str, Any]) -> NoReturn:
    stdin, stdout, stderr = request["files"]
    os.dup2(os.open(stdin, os.O_RDONLY), 0)
    os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    os.dup2(1 if stderr == stdout else os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
    os.closerange(3, 64)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    tests_directory = str(Path(__file__).parent)
    added = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [request["cwd"], *filter(None, added), *(path for path in sys.path if path != tests_directory)]
    importlib.invalidate_caches()
    sys.argv = ["toold", *request["arguments"]]
    importlib.import_module("toold.cli").main()
    sys.exit(0)


if __name__ == "__main__":
    _import_toold()
    _request = _serve()
    if _request is not None:
        _become_toold(_request)
