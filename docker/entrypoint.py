"""The container's entrypoint: validates the environment, writes nginx's configuration, and executes supervisor."""

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rendering import Container, ContainerError, container, fill_in, htpasswd, listen_conf, pages_conf, with_secrets
from toold.protocol.daemon_address import TOKEN_FILE, default_state_dir

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Execute supervisor. A failure is one line on stderr and exit code 1."""
    try:
        this = container(with_secrets(os.environ, lambda path: Path(path).read_text("utf-8")))
        _check_readable(this.certificate or ())
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
    os.execve(supervisor, [supervisor, "-c", str(HERE / "supervisord.conf")], environment)  # noqa: S606 - replaces this process


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
        "listen.conf": listen_conf(this),
        "pages.conf": pages_conf(this),
    }
    if this.pages_password is not None:
        files["htpasswd"] = htpasswd(this.pages_user, this.pages_password, secrets.token_bytes(16))
    for name, text in files.items():
        (run / name).write_text(text, "utf-8")


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
