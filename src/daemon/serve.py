"""``toold serve``: one daemon in the foreground, from its banner to its exit code."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import structlog
import uvloop

from ..protocol.daemon_address import SHUTDOWN_MARGIN_S, TOKEN_FILE, default_state_dir
from ..store import StoreError
from .app import Daemon
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .lifecycle import running
from .observability.logging_setup import set_up_logging
from .persistence.state_directory import StateError

EXIT_OK: Final = 0
EXIT_CANNOT_START: Final = 1
EXIT_WRONG_SETTING: Final = 2

_LEAVE_S: Final = 1.0
"""How long work that was given up has to end by itself; its callers are answered already."""

_ECHO_S: Final = 0.5
"""A second signal so soon is the first one's, sent to the process and to its group."""

_log = structlog.get_logger("toold.daemon")


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. What prevents the start is one line on stderr."""
    set_up_logging(settings.log_format, settings.log_level)
    try:
        uvloop.run(_serve(settings))
    except (SettingsError, StateError, StoreError, OSError) as error:
        print(f"toold: cannot start: {error}", file=sys.stderr)  # noqa: T201 - for the person who started it
        return EXIT_WRONG_SETTING if isinstance(error, SettingsError) else EXIT_CANNOT_START
    _flush_outputs()
    return EXIT_OK


def _flush_outputs() -> None:
    """Write out what is printed. What a closed terminal takes no more is dropped: Python would end with 120 for it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


async def _serve(settings: Settings) -> None:
    """Run until told to stop."""
    loop = asyncio.get_running_loop()
    stop = _Stop(loop, settings.grace_period_s + SHUTDOWN_MARGIN_S)
    # `nohup` has SIGHUP ignored, so that the end of the terminal is not the daemon's.
    bound_to_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and _has_terminal()
    async with running(settings) as daemon:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.on_signal)
        hangup = _Hangup(daemon, stop, bound_to_terminal)
        loop.add_signal_handler(signal.SIGHUP, hangup.on_signal)
        with contextlib.suppress(OSError):  # its terminal may be closed already; then SIGHUP says so
            print(banner(daemon), flush=True)  # noqa: T201 - for the person who started it
        await stop.event.wait()
    _log.info("stopped")
    await _leave()


async def _leave() -> None:
    """End the process here where a tool or a thread of an SDK does not let go: Python would wait for it for ever."""
    work = asyncio.all_tasks() - {asyncio.current_task()}
    for task in work:
        task.cancel()
    work.add(asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor()))
    _, stuck = await asyncio.wait(work, timeout=_LEAVE_S)
    threads = await _threads_that_stay(_LEAVE_S)
    if stuck or threads:
        _log.warning("left work behind that does not end", tasks=len(stuck), threads=threads)
        _flush_outputs()
        os._exit(EXIT_OK)


async def _threads_that_stay(timeout_s: float) -> int:
    """How many threads, such as a tool may have started, Python would wait for after ``timeout_s`` seconds."""
    deadline = time.monotonic() + timeout_s
    while True:
        threads = [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
        if not threads or time.monotonic() > deadline:
            return len(threads)
        await asyncio.sleep(0.02)


@dataclass(slots=True)
class _Stop:
    """Whether, and since when, the daemon is asked to stop. The first signal drains; a second one ends at once.

    Its handler is Python's and not the loop's, so that it runs while a tool blocks the loop, too.
    """

    loop: asyncio.AbstractEventLoop
    within_s: float
    """The end takes no longer, whatever blocks the loop."""
    event: asyncio.Event = field(default_factory=asyncio.Event)
    asked_at: float | None = None

    def on_signal(self, number: int, _frame: FrameType | None = None) -> None:
        """Handle SIGTERM, SIGINT, or a SIGHUP that means the same."""
        now = time.monotonic()
        if self.asked_at is None:
            self.asked_at = now
            self.loop.call_soon_threadsafe(self._begin, number)
            threading.Thread(target=self._end_in_time, args=(number,), name="end in time", daemon=True).start()
        elif now - self.asked_at > _ECHO_S:  # `timeout` and others signal the process and its group
            os._exit(128 + number)

    def _begin(self, number: int) -> None:
        _log.info("signal", signal=signal.Signals(number).name)
        self.event.set()

    def _end_in_time(self, number: int) -> None:
        time.sleep(self.within_s)
        os.write(2, b"toold: the event loop is blocked; ending without it\n")
        os._exit(128 + number)


@dataclass(slots=True)
class _Hangup:
    """SIGHUP: the configuration is read again; or the terminal that the daemon runs in was closed, and it stops."""

    daemon: Daemon
    stop: _Stop
    bound_to_terminal: bool
    reloads: set[asyncio.Task[None]] = field(default_factory=set)

    def on_signal(self) -> None:
        if self.bound_to_terminal and not _has_terminal():
            self.stop.on_signal(signal.SIGHUP)
            return
        _log.info("signal", signal=signal.SIGHUP.name)
        reload = asyncio.create_task(self._reload())
        self.reloads.add(reload)
        reload.add_done_callback(self.reloads.discard)

    async def _reload(self) -> None:
        with contextlib.suppress(SettingsError):  # the log has it
            await self.daemon.reload()


def _has_terminal() -> bool:
    """Whether this process has a terminal that it is controlled by."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def banner(daemon: Daemon) -> str:
    """What a person needs to know: where it listens, where the token is, who answers, and what to type next."""
    settings, address = daemon.settings, daemon.address()
    if not settings.auth:
        token = "none: auth is off, anybody on this machine may call"  # noqa: S105 - a sentence
    elif settings.token is not None:
        token = "from the settings (TOOLD_TOKEN)"  # noqa: S105 - a sentence
    else:
        token = f"in {settings.state_dir / TOKEN_FILE} (`{' '.join([*_directory(settings), 'toold token'])}` prints it)"
    lines = [
        f"toold {address.version} is ready.",
        f"  WebSocket  {address.url}",
        f"  HTTP       {address.http_url} (healthz, readyz, metrics)",
        f"  MCP        {address.http_url}mcp (over stdio: `toold mcp`)",
        f"  Token      {token}",
    ]
    lines += [f"  {row['label']:<16} {_answers(row)}" for row in daemon.view.providers()]
    lines.append(f"  Tools      {len(daemon.registry.tools)} (`toold tools` lists them)")
    if daemon.view.simulated:
        lines.append("  SIMULATED: no vendor is asked; a local simulator makes the answers up, and they say so.")
    lines += ["Try it, in a second terminal:", f"  {_example(daemon)}"]
    return "\n".join(lines)


def _answers(row: dict[str, object]) -> str:
    if not row["available"]:
        return str(row["missing"])
    return "simulated" if row["simulated"] else "real"


def _example(daemon: Daemon) -> str:
    """A command that works as it stands, typed in the same directory with the same environment."""
    settings, directory = daemon.settings, Path.cwd()
    command = Path(sys.executable).with_name("toold")
    if command.is_relative_to(directory):
        command = command.relative_to(directory)
    words = [*_directory(settings), shlex.quote(str(command)), "call"]
    readme = (directory / "README.md").resolve()
    if not any(row["available"] for row in daemon.view.providers()):
        words.append("echo text=Hello")
    elif readme.is_file() and any(readme.is_relative_to(root) for root in settings.workspace):
        words.append('chat prompt="What is in this file?" files=README.md')
    else:
        words.append("chat prompt=Hello")
    return " ".join(words)


def _directory(settings: Settings) -> list[str]:
    """What stands before a command that would not find the state directory: clients know of no flag and no
    toold.toml.
    """
    if settings.state_dir == Path.cwd() / default_state_dir(os.environ):
        return []
    return [f"TOOLD_STATE_DIR={shlex.quote(str(settings.state_dir))}"]
