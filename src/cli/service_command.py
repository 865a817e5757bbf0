"""``toold service``: installs or removes the daemon as a user service of systemd or launchd."""

import errno
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from ..daemon import Settings, variables_in
from .command_settings import settings_with, toold_environment, toold_program
from .daemon_connection import CommandFailedError
from .operator_client import running_pid
from .service_files import LABEL, UNIT, StartCommand, launchd_agent, service_file, systemd_unit
from .terminal_output import say

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SystemService:
    """The service file, and the service manager's commands to start and stop the service."""

    path: Path
    content: bytes
    start: Sequence[Command]
    restart: Sequence[Command]
    """Run instead of ``start`` if the service file replaces another one."""
    stop: Sequence[Command]
    """Run before the file is removed."""
    unregister: Sequence[Command]
    """Run after the file is removed."""
    note: str


_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
_print = click.option("--print", "only_print", is_flag=True, help="Print the changes without making them.")


@click.group()
def command() -> None:
    """Run the daemon as a user service of systemd (Linux) or launchd (macOS). It starts at login and restarts after a
    failure.
    """


@command.command(short_help="Install and start the service.")
@_yes
@_print
def install(yes: bool, only_print: bool) -> None:
    """Write the service file and start the service.

    The service runs `toold serve` in this directory, with the state directory and toold.toml in effect here. It
    inherits nothing else from this shell's environment, so set API keys in toold.toml.
    """
    settings = settings_with({})
    service = service_for(sys.platform, settings)
    earlier = _content(service.path)
    commands = service.start if earlier in {None, service.content} else service.restart
    say(f"{service.path}:\n\n{service.content.decode()}")
    _show("Then:", commands)
    for line in _ignored_variables(settings):
        say(line, err=True)
    if only_print:
        return
    if shutil.which(commands[0][0]) is None:
        raise CommandFailedError(
            f"{commands[0][0]} is not installed here, so nothing was installed; let this machine's process manager run "
            f"{shlex.join((*toold_program(), 'serve'))}"
        )
    if earlier is None and (pid := running_pid(settings.state_dir)) is not None:
        raise CommandFailedError(
            f"a daemon (pid {pid}) already runs in {settings.state_dir}; stop it first: toold stop"
        )
    _confirm(yes, "Install and start the service?")
    backup = None if earlier in {None, service.content} else _back_up(service.path)
    if backup is not None:
        say(f"Backup: {backup}")
    created = _missing_directories(service.path.parent)
    try:
        _write(service)
        _run(commands)
    except CommandFailedError as error:
        if earlier == service.content:
            raise
        _undo(service, backup, created)
        raise CommandFailedError(
            f"{error.message}\nNothing was installed. Fix this, then run the command again."
        ) from None
    say(f"Installed. {service.note}")


@command.command(short_help="Stop and remove the service.")
@_yes
@_print
def remove(yes: bool, only_print: bool) -> None:
    """Stop the service and remove its file. The token, database and settings stay."""
    service = service_for(sys.platform, settings_with({}))
    if _content(service.path) is None:
        say(f"{service.path} does not exist; nothing to remove.")
        return
    _show("First:", service.stop)
    say(f"Then: remove {service.path}")
    _show("Then:", service.unregister)
    if only_print:
        return
    _confirm(yes, "Stop and remove the service?")
    try:
        _run(service.stop)
        service.path.unlink()
        _run(service.unregister)
    except CommandFailedError as error:
        raise CommandFailedError(f"{error.message}\nFix this, then run the command again.") from None
    say("Removed.")


def _missing_directories(directory: Path) -> list[Path]:
    """The directories that have to be created for this one, the deepest first."""
    return [path for path in (directory, *directory.parents) if not path.exists()]


def _undo(service: SystemService, backup: Path | None, created: Sequence[Path]) -> None:
    """Restore the files from before a failed installation."""
    is_written = service.path.exists()
    if backup is not None:
        backup.replace(service.path)
    elif is_written:
        _try_each(service.stop)
        service.path.unlink()
    for directory in created:
        with suppress(OSError):  # it was not created, or someone else has put a file into it
            directory.rmdir()
    if is_written:
        _try_each(service.unregister)


def _try_each(commands: Sequence[Command]) -> None:
    """Run the commands that undo a failed one; they may fail for the same reason."""
    for words in commands:
        subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - fixed arguments


def service_for(platform: str, settings: Settings) -> SystemService:
    """The service of this user on this platform.

    Raises:
        CommandFailedError: the platform is not supported.
    """
    start = StartCommand((*toold_program(), "serve"), Path.cwd(), toold_environment(settings), settings.grace_period_s)
    path = service_file(platform, Path.home())
    if path is None:
        raise CommandFailedError(f"{platform} is not supported; configure its service manager to run `toold serve`")
    return _systemd(start, path) if platform == "linux" else _launchd(start, path)


def _systemd(start: StartCommand, path: Path) -> SystemService:
    systemctl = ("systemctl", "--user")
    daemon_reload = (*systemctl, "daemon-reload")
    return SystemService(
        path=path,
        content=systemd_unit(start).encode(),
        start=[daemon_reload, (*systemctl, "enable", "--now", UNIT)],
        restart=[daemon_reload, (*systemctl, "enable", UNIT), (*systemctl, "restart", UNIT)],
        stop=[(*systemctl, "disable", "--now", UNIT)],
        unregister=[daemon_reload],
        note=f"Log: journalctl --user -u {LABEL}. To keep it running after logout: loginctl enable-linger",
    )


def _launchd(start: StartCommand, path: Path) -> SystemService:
    log = Path.home() / "Library/Logs" / f"{LABEL}.log"
    domain = f"gui/{os.getuid()}"
    load, unload = ("launchctl", "bootstrap", domain, str(path)), ("launchctl", "bootout", f"{domain}/{LABEL}")
    return SystemService(
        path=path,
        content=launchd_agent(start, log),
        start=[load],
        restart=[unload, load],
        stop=[unload],
        unregister=[],
        note=f"Log: {log}",
    )


def _ignored_variables(settings: Settings) -> Iterator[str]:
    """A warning that names the variables of this shell that the service does not inherit."""
    names = [name for name in variables_in(os.environ) if name != "TOOLD_STATE_DIR"]
    if names:
        file = settings.config_place
        yield f"The service does not inherit {', '.join(names)}. Set them in {file} (mode 600) if it needs them."


def _show(title: str, commands: Sequence[Command]) -> None:
    if commands:
        say("\n  ".join([title, *map(shlex.join, commands)]))


def _confirm(yes: bool, question: str) -> None:
    """Raises ``click.Abort`` (exit code 1) if the answer is no, or stdin is closed."""
    if not yes:
        click.confirm(question, abort=True)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailedError(f"cannot read {path} ({error.strerror})") from None


def _back_up(path: Path) -> Path:
    """Rename the file to an unused backup name."""
    number = 1
    while (backup := path.with_name(f"{path.name}.bak{number}")).exists():
        number += 1
    return path.rename(backup)


def _write(service: SystemService) -> None:
    unfinished = service.path.with_name(f"{service.path.name}.new")
    try:
        service.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(service.content)
        unfinished.replace(service.path)
    except OSError as error:
        raise CommandFailedError(f"cannot write {service.path} ({error.strerror})") from None


def _run(commands: Sequence[Command]) -> None:
    """Run the commands in order. If one is not installed, print the remaining commands to run by hand.

    Raises:
        CommandFailedError: a command failed.
    """
    for index, words in enumerate(commands):
        remaining = "; ".join(map(shlex.join, commands[index:]))
        if shutil.which(words[0]) is None:
            say(f"{words[0]} is not installed. Run this where it is: {remaining}", err=True)
            return
        finished = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - fixed arguments
        if finished.returncode and not _was_not_loaded(words, finished.returncode):
            output = (finished.stderr or finished.stdout).strip() or f"exit code {finished.returncode}"
            raise CommandFailedError(f"{shlex.join(words)} failed: {output}")


def _was_not_loaded(words: Command, returncode: int) -> bool:
    """Whether launchd refused to stop an agent because it does not run: ESRCH."""
    return words[:2] == ("launchctl", "bootout") and returncode == errno.ESRCH
