"""``toold serve``: runs one daemon in the foreground, handles signals, and returns the exit code."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import structlog
import uvloop

from ..protocol.daemon_address import SHUTDOWN_MARGIN_S, TOKEN_FILE, default_state_dir
from ..store import StoreError
from ..tools import TOOL_THREAD
from .app import Daemon
from .config.default_model import default_model_text
from .config.former_agent_variables import NOT_UNDERSTOOD
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .controlling_terminal import SIGNAL_ECHO_S, ends_with_terminal, has_terminal
from .exit_codes import EXIT_CANNOT_START, EXIT_FENCED, EXIT_OK, EXIT_WRONG_SETTING
from .lifecycle import running
from .memory_return import keep_large_blocks_apart
from .observability.logging_setup import name_worker, set_up_logging
from .off_loop import LONG_WORK_THREAD
from .persistence.state_directory import StateError
from .workers.supervisor import supervise
from .workers.supervisor_link import SupervisorLink
from .workers.worker_slot import slot_in

_CLEANUP_TIMEOUT_S: Final = 1.0
"""The time in which abandoned work must end; its callers already have answers."""

_log = structlog.get_logger("toold.daemon")


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. A failure to start is one line on stderr."""
    set_up_logging(settings.log_format, settings.log_level)
    return _exit_code(lambda: _run(settings))


def run_workers(settings: Settings, command: Sequence[str]) -> int:
    """Serve with several processes until SIGTERM or SIGINT, like ``run``. ``command`` starts one process."""
    set_up_logging(settings.log_format, settings.log_level)
    return _exit_code(lambda: supervise(settings, command))


def _run(settings: Settings) -> int:
    keep_large_blocks_apart()
    uvloop.run(_serve(settings))
    return EXIT_OK


def _exit_code(work: Callable[[], int]) -> int:
    try:
        code = work()
    except (SettingsError, StateError, StoreError, OSError) as error:
        print(f"toold: cannot start: {error}", file=sys.stderr)  # noqa: T201 - for the user at the terminal
        return EXIT_WRONG_SETTING if isinstance(error, SettingsError) else EXIT_CANNOT_START
    _flush_outputs()
    return code


def _flush_outputs() -> None:
    """Flush stdout and stderr. Output to a closed terminal is dropped: Python would exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, stream.fileno())
            os.close(devnull)


async def _serve(settings: Settings) -> None:
    """Run until a signal stops the daemon."""
    loop = asyncio.get_running_loop()
    stop = _Stop(loop, settings.grace_period_s + SHUTDOWN_MARGIN_S)
    bound_to_terminal = ends_with_terminal()
    slot = slot_in()
    if slot is not None:
        name_worker(slot.number)
    link = None if slot is None else SupervisorLink(slot)
    async with running(settings, on_fenced=_exit_fenced, worker=slot) as daemon:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.on_signal)
        hangup = _Hangup(daemon, stop, bound_to_terminal)
        loop.add_signal_handler(signal.SIGHUP, hangup.on_signal)
        if slot is None or slot.announces:
            with contextlib.suppress(OSError):  # the terminal may be closed already; SIGHUP follows
                print(banner(daemon), flush=True)  # noqa: T201 - for the user at the terminal
        for note in settings.notes:
            if NOT_UNDERSTOOD in note:
                _log.warning("a variable has no effect", note=note)
        if link is not None:
            daemon.on_reload = link.reloaded
            link.ready()
            stop.follow(link)
        await stop.event.wait()
    _log.info("stopped")
    await _leave()


def _exit_fenced(reason: str) -> None:
    """End the process at once, on the store's thread, because its further answers could contradict another node."""
    _log.critical("this node was declared dead; exiting", reason=reason)
    _flush_outputs()
    os._exit(EXIT_FENCED)


async def _leave() -> None:
    """Exit the process, after abandoned work had its time to end.

    Python's own exit waits without limit for tasks, asynchronous generators, threads, exit handlers and destructors of
    libraries, and near its end no thread can limit the time. Everything is closed and stored already.
    """
    for thread in (TOOL_THREAD, LONG_WORK_THREAD):
        thread.end()
    work = asyncio.all_tasks() - {asyncio.current_task()}
    for task in work:
        task.cancel()
    work.add(asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor()))
    _, stuck = await asyncio.wait(work, timeout=_CLEANUP_TIMEOUT_S)
    threads = await _remaining_threads(_CLEANUP_TIMEOUT_S)
    if stuck or threads:
        _log.warning("exiting with unfinished work", tasks=len(stuck), threads=threads)
    _flush_outputs()
    os._exit(EXIT_OK)


async def _remaining_threads(timeout_s: float) -> int:
    """The number of non-daemon threads after up to ``timeout_s`` seconds; Python would wait for them at exit."""
    deadline = time.monotonic() + timeout_s
    while True:
        threads = [
            thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()
        ]
        if not threads or time.monotonic() > deadline:
            return len(threads)
        await asyncio.sleep(0.02)


@dataclass(slots=True)
class _Stop:
    """The stop request. The first signal starts the drain; a second one exits at once.

    Uses Python's signal handler instead of the event loop's, so that it also runs while a tool blocks the loop.
    """

    loop: asyncio.AbstractEventLoop
    within_s: float
    """The time limit of the shutdown, even if the loop is blocked."""
    event: asyncio.Event = field(default_factory=asyncio.Event)
    asked_at: float | None = None
    following: asyncio.Task[None] | None = None

    def on_signal(self, number: int, _frame: FrameType | None = None) -> None:
        """Handle SIGTERM, SIGINT, or SIGHUP of a closed terminal."""
        now = time.monotonic()
        if self.asked_at is None:
            self.asked_at = now
            self.loop.call_soon_threadsafe(self._begin, number)
            threading.Thread(target=self._exit_in_time, args=(number,), name="exit in time", daemon=True).start()
        elif now - self.asked_at > SIGNAL_ECHO_S:  # `timeout` and others signal both the process and its group
            os._exit(128 + number)

    def follow(self, link: SupervisorLink) -> None:
        """Stop when the supervisor has ended, because no other process would stop this one."""

        async def wait_for_it() -> None:
            await link.supervisor_ended()
            self.on_signal(signal.SIGTERM)

        self.following = asyncio.create_task(wait_for_it(), name="supervisor")

    def _begin(self, number: int) -> None:
        _log.info("signal", signal=signal.Signals(number).name)
        self.event.set()

    def _exit_in_time(self, number: int) -> None:
        time.sleep(self.within_s)
        os.write(2, b"toold: the event loop is blocked; exiting anyway\n")
        os._exit(128 + number)


@dataclass(slots=True)
class _Hangup:
    """Handles SIGHUP: reloads the configuration, or stops if the daemon's terminal was closed."""

    daemon: Daemon
    stop: _Stop
    bound_to_terminal: bool
    reloads: set[asyncio.Task[None]] = field(default_factory=set)

    def on_signal(self) -> None:
        if self.bound_to_terminal and not has_terminal():
            self.stop.on_signal(signal.SIGHUP)
            return
        _log.info("signal", signal=signal.SIGHUP.name)
        reload = asyncio.create_task(self._reload())
        self.reloads.add(reload)
        reload.add_done_callback(self.reloads.discard)

    async def _reload(self) -> None:
        with contextlib.suppress(SettingsError):  # reload() logs it
            await self.daemon.reload()


def banner(daemon: Daemon) -> str:
    """The start message: addresses, token, vendors, and a command to try."""
    settings, address = daemon.settings, daemon.address()
    if not settings.auth:
        token = "none: authentication is off; any local user can call"  # noqa: S105 - a sentence
    elif settings.token is not None:
        token = f"from the settings ({settings.origins.get('token', 'TOOLD_TOKEN')})"
    else:
        token = f"in {settings.state_dir / TOKEN_FILE} (`{' '.join([*_directory(settings), 'toold token'])}` prints it)"
    lines = [
        f"toold {address.version} is ready.",
        f"  WebSocket  {address.url}",
        f"  HTTP       {address.http_url} (/healthz, /readyz, /metrics)",
        f"  MCP        {address.http_url}mcp (stdio: `toold mcp`)",
        f"  Token      {token}",
    ]
    configured = settings.providers  # with these, Kimi and GLM need no key
    rows = daemon.view.providers()
    shown = [row for row in rows if row["available"] or not configured or row["name"] in configured]
    lines += [f"  {row['label']:<16} {_availability(row)}" for row in shown]
    chosen = daemon.view.chosen_model
    if chosen is not None:
        lines.append(f"  Model      {default_model_text(settings, chosen, daemon.view.catalog)}")
    lines.append(f"  Tools      {len(daemon.registry.tools)} (`toold tools` lists them)")
    if daemon.view.simulated:
        lines.append(
            "  SIMULATED: a local simulator answers instead of the vendors. Its answers are marked as simulated."
        )
    if daemon.worker is not None:
        lines.append(f"  Workers    {daemon.worker.count} processes (`toold status` lists them)")
    lines += [f"  Note       {note}" for note in settings.notes]
    lines += [f"  PROBLEM    {problem}" for problem in daemon.sources.problems]
    lines += ["Try it in a second terminal:", f"  {_example(daemon)}"]
    return "\n".join(lines)


def _availability(row: dict[str, object]) -> str:
    if not row["available"]:
        return str(row["missing"])
    return "simulated" if row["simulated"] else "real"


def _example(daemon: Daemon) -> str:
    """A command that works in the same directory and environment."""
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
    """The variable with which clients find the state directory; they read neither flags nor toold.toml."""
    if settings.state_dir == Path.cwd() / default_state_dir(os.environ):
        return []
    return [f"TOOLD_STATE_DIR={shlex.quote(str(settings.state_dir))}"]
