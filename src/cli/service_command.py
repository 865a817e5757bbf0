"""``toold service``: have the system start the daemon with the user's session, or no longer."""

import errno
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ..daemon import Settings, variables_in
from .command_settings import settings_with
from .daemon_connection import CommandFailedError
from .operator_client import held_by
from .program_path import environment, toold
from .service_files import LABEL, UNIT, Start, agent, service_file, unit

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SystemService:
    """What is written where, and what the system is told then."""

    path: Path
    content: bytes
    start: Sequence[Command]
    restart: Sequence[Command]
    """Instead of ``start``, where another file of this name was there."""
    stop: Sequence[Command]
    """Before the file is removed."""
    forget: Sequence[Command]
    """After it is."""
    note: str


_yes = click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
_print = click.option("--print", "only_print", is_flag=True, help="Print what would be done, and do nothing.")


@click.group(short_help="Have the daemon started with your session: install, remove.")
def command() -> None:
    """Have systemd (Linux) or launchd (macOS) start the daemon with your session, and again where it fails."""


@command.command()
@_yes
@_print
def install(yes: bool, only_print: bool) -> None:
    """Write the service's file and start the service.

    It runs as `toold serve` would from this directory now, with the state directory and the toold.toml that are in
    effect here. No other variable of this shell goes along, and no key: what it needs belongs into toold.toml.
    """
    settings = settings_with({})
    service = service_for(sys.platform, settings)
    earlier = _content(service.path)
    commands = service.start if earlier in {None, service.content} else service.restart
    click.echo(f"{service.path}:\n\n{service.content.decode()}")
    _show("Then:", commands)
    for line in _left_out(settings):
        click.echo(line, err=True)
    if only_print:
        return
    if earlier is None and (pid := held_by(settings.state_dir)) is not None:
        raise CommandFailedError(
            f"a daemon of pid {pid} runs in {settings.state_dir} already; stop it first: toold stop"
        )
    _ask(yes, "Install and start it?")
    if earlier not in {None, service.content}:
        click.echo(f"The file that was there is kept as {_set_aside(service.path)}.")
    _write(service)
    _run(commands)
    click.echo(f"Installed. {service.note}")


@command.command()
@_yes
@_print
def remove(yes: bool, only_print: bool) -> None:
    """Stop the service and remove its file; token, database and settings stay."""
    service = service_for(sys.platform, settings_with({}))
    if _content(service.path) is None:
        click.echo(f"There is no {service.path}; nothing to remove.")
        return
    _show("First:", service.stop)
    click.echo(f"Then {service.path} is removed.")
    _show("Then:", service.forget)
    if only_print:
        return
    _ask(yes, "Stop and remove it?")
    _run(service.stop)
    service.path.unlink()
    _run(service.forget)
    click.echo("Removed.")


def service_for(platform: str, settings: Settings) -> SystemService:
    """The service of this user on this platform.

    Raises:
        CommandFailedError: there is none for this platform.
    """
    start = Start((*toold(), "serve"), Path.cwd(), environment(settings), settings.grace_period_s)
    path = service_file(platform, Path.home())
    if path is None:
        raise CommandFailedError(f"there is no service for {platform}: have its own service manager run `toold serve`")
    return _systemd(start, path) if platform == "linux" else _launchd(start, path)


def _systemd(start: Start, path: Path) -> SystemService:
    systemctl = ("systemctl", "--user")
    reread = (*systemctl, "daemon-reload")
    return SystemService(
        path=path,
        content=unit(start).encode(),
        start=[reread, (*systemctl, "enable", "--now", UNIT)],
        restart=[reread, (*systemctl, "enable", UNIT), (*systemctl, "restart", UNIT)],
        stop=[(*systemctl, "disable", "--now", UNIT)],
        forget=[reread],
        note=f"Its log: journalctl --user -u {LABEL}. To have it run while you are logged out: loginctl enable-linger",
    )


def _launchd(start: Start, path: Path) -> SystemService:
    log = Path.home() / "Library/Logs" / f"{LABEL}.log"
    domain = f"gui/{os.getuid()}"
    load, unload = ("launchctl", "bootstrap", domain, str(path)), ("launchctl", "bootout", f"{domain}/{LABEL}")
    return SystemService(
        path=path,
        content=agent(start, log),
        start=[load],
        restart=[unload, load],
        stop=[unload],
        forget=[],
        note=f"Its log: {log}",
    )


def _left_out(settings: Settings) -> Iterator[str]:
    """What holds in this shell and will not in the service, by name."""
    names = [name for name in variables_in(os.environ) if name != "TOOLD_STATE_DIR"]
    if names:
        file = settings.config or Path.cwd() / "toold.toml"
        yield f"Not part of the service: {', '.join(names)}. Put what it needs into {file}, mode 600."


def _show(title: str, commands: Sequence[Command]) -> None:
    if commands:
        click.echo("\n  ".join([title, *map(shlex.join, commands)]))


def _ask(yes: bool, question: str) -> None:
    """Raises ``click.Abort`` (exit code 1) where the answer is no, or nobody can answer."""
    if not yes:
        click.confirm(question, abort=True)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailedError(f"{path} cannot be read ({error.strerror})") from None


def _set_aside(path: Path) -> Path:
    """Keep the file under a name of its own."""
    number = 1
    while (kept := path.with_name(f"{path.name}.bak{number}")).exists():
        number += 1
    return path.rename(kept)


def _write(service: SystemService) -> None:
    unfinished = service.path.with_name(f"{service.path.name}.new")
    try:
        service.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(service.content)
        unfinished.replace(service.path)
    except OSError as error:
        raise CommandFailedError(f"{service.path} cannot be written ({error.strerror})") from None


def _run(commands: Sequence[Command]) -> None:
    """Run them in order; where one fails or cannot be run, say which are left to be run by hand.

    Raises:
        CommandFailedError: one failed.
    """
    for place, words in enumerate(commands):
        by_hand = "; ".join(map(shlex.join, commands[place:]))
        if shutil.which(words[0]) is None:
            click.echo(f"There is no {words[0]} here, so this is left to be run where there is: {by_hand}", err=True)
            return
        ended = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - our own words, shown above
        if ended.returncode and not _was_not_loaded(words, ended.returncode):
            said = (ended.stderr or ended.stdout).strip() or f"exit code {ended.returncode}"
            raise CommandFailedError(f"{shlex.join(words)} failed: {said}\nOnce that is mended, run: {by_hand}")


def _was_not_loaded(words: Command, returncode: int) -> bool:
    """Whether launchd was told to end what it does not run: ESRCH."""
    return words[:2] == ("launchctl", "bootout") and returncode == errno.ESRCH
