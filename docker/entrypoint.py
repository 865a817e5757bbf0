"""The container's entrypoint: validates the environment, writes nginx's configuration, and executes supervisor."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from rendering import (
    Container,
    ContainerError,
    container,
    fill_in,
    htpasswd,
    listen_conf,
    pages_conf,
    state_problem,
    with_secrets,
)
from toold.protocol.daemon_address import TOKEN_FILE, default_state_dir

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Execute supervisor. A failure is one line on stderr and exit code 1."""
    try:
        this = container(with_secrets(os.environ, lambda path: Path(path).read_text("utf-8")))
        _check_readable(this.certificate or ())
        _check_state(default_state_dir(this.daemon))
        supervisor, nginx = _program("supervisord"), _program("nginx")
        _write_configuration(this)
        _write_token(this.daemon)
    except (ContainerError, OSError) as error:
        sys.exit(f"container: cannot start: {error}")
    environment = {
        **this.daemon,
        "RUN_DIR": this.run,
        "CONTAINER_DIR": str(HERE),
        "PYTHON": sys.executable,
        "NGINX_PROGRAM": nginx,
        "STOP_WAIT_S": str(this.stop_wait_s),
        "START_RETRIES": str(this.start_retries),
    }
    command = [supervisor, "-c", str(HERE / "supervisord.conf")]
    refused = _cannot_reopen(1) or _cannot_reopen(2)
    if refused is not None:
        _run_with_pipe(command, environment, refused)
    os.execve(supervisor, command, environment)  # noqa: S606 - replaces this process


def _check_state(directory: Path) -> None:
    """Write a file: permissions, owners, read-only mounts and full disks all show only then."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        there = next(path for path in (directory, *directory.parents) if path.exists())
        reason = error.strerror or str(error)
        problem = state_problem(str(directory), user=os.getuid(), owner=there.stat().st_uid, reason=reason)
        raise ContainerError(problem) from None


def _cannot_reopen(descriptor: int) -> str | None:
    """Why supervisor, which opens its output by name, could not open this one; None if it can.

    It is refused for a socket, and for a terminal or a pipe of another user. supervisor would then try to start the
    programs again and again, and could not say so.
    """
    try:
        os.close(os.open(f"/dev/fd/{descriptor}", os.O_WRONLY | os.O_APPEND))
    except OSError as error:
        return f"/dev/fd/{descriptor}: {error.strerror}"
    return None


def _run_with_pipe(command: Sequence[str], environment: Mapping[str, str], refused: str) -> NoReturn:
    """Run supervisor with a pipe as its output, copy the pipe to this process's, and exit as supervisor does."""
    sys.stderr.write(f"container: the output cannot be opened by name ({refused}); it goes through a pipe\n")
    sys.stderr.flush()
    reading, writing = os.pipe()
    supervisor = subprocess.Popen(command, env=environment, stdout=writing, stderr=writing)  # noqa: S603 - ours
    os.close(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, lambda received, _: supervisor.send_signal(received))
    while chunk := os.read(reading, 65536):
        with suppress(OSError):  # the reader has exited; the programs must not wait for it
            while chunk:
                chunk = chunk[os.write(1, chunk) :]
    code = supervisor.wait()
    sys.exit(code if code >= 0 else 128 - code)


def _check_readable(paths: tuple[str, ...]) -> None:
    for path in paths:
        if not os.access(path, os.R_OK):
            raise ContainerError(f"{path} cannot be read by this container's user ({os.getuid()})")


def _program(name: str) -> str:
    local = Path(sys.executable).with_name(name)
    found = str(local) if local.exists() else shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise ContainerError(f"{name} is not installed")
    return found


def _write_configuration(this: Container) -> None:
    os.umask(0o077)
    run = Path(this.run)
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    values = {
        # As root, nginx would run its workers as a user that cannot read this container's files.
        "user": "user root;\n" if os.getuid() == 0 else "",
        "run": this.run,
        "container": str(HERE),
        "port": str(this.port),
        "http_port": str(this.http_port),
    }
    files = {
        "nginx.conf": fill_in((HERE / "nginx.conf").read_text("utf-8"), values),
        "listen.conf": listen_conf(this, ipv6=_has_ipv6()),
        "pages.conf": pages_conf(this),
    }
    if this.pages_password is not None:
        files["htpasswd"] = htpasswd(this.pages_user, this.pages_password, secrets.token_bytes(16))
    for name, text in files.items():
        (run / name).write_text(text, "utf-8")


def _has_ipv6() -> bool:
    """Whether a port can be opened for IPv6: the kernel, or the container's network, may lack it."""
    if not socket.has_ipv6:
        return False
    with suppress(OSError), socket.socket(socket.AF_INET6) as tried:
        tried.bind(("::", 0))
        return True
    return False


def _write_token(env: Mapping[str, str]) -> None:
    """Write a given token to the state directory, for commands in this container, which have another environment."""
    if env.get("TOOLD_TOKEN"):
        directory = default_state_dir(env)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = directory / f"{TOKEN_FILE}.new"
        new.write_text(f"{env['TOOLD_TOKEN']}\n", "utf-8")
        new.replace(directory / TOKEN_FILE)


if __name__ == "__main__":
    main()
