"""The supervisor: keeps N workers running, and starts, reloads and stops them as one."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final

import structlog
from msgspec.structs import replace

from ...protocol.daemon_address import SHUTDOWN_MARGIN_S, DaemonAddress
from ...version import __version__
from ..config.settings import Settings
from ..controlling_terminal import SIGNAL_ECHO_S, ends_with_terminal, has_terminal
from ..exit_codes import EXIT_FENCED
from ..persistence.key_files import make_key_files
from ..persistence.state_directory import FullDiskError, StateDirectory, StateError
from .restart_policy import RestartPolicy
from .shared_ports import SharedPorts
from .worker_files import worker_directory
from .worker_process import WorkerProcess, start_worker
from .worker_slot import WorkerSlot

_KILL_MARGIN_S: Final = 5.0
"""The time after the grace period in which a worker may still end by itself."""

_log = structlog.get_logger("toold.workers")


def supervise(settings: Settings, command: Sequence[str]) -> int:
    """Runs ``settings.workers`` workers until SIGTERM or SIGINT. Returns the exit code. ``command`` starts one.

    Raises:
        StateError: the state directory cannot be used, or another daemon runs in it.
        OSError: a port cannot be listened on, or a process cannot be started.
    """
    with ExitStack() as stack:
        state = stack.enter_context(StateDirectory(settings.state_dir))
        if settings.auth and settings.token is None:
            state.load_or_create_token()
        make_key_files(state.path, state.load_or_create_audit_key())
        ports = stack.enter_context(SharedPorts(settings.host, settings.port, settings.http_port))
        return asyncio.run(Supervisor(settings, command, state, ports).run())


class Supervisor:
    """The workers of one service."""

    def __init__(self, settings: Settings, command: Sequence[str], state: StateDirectory, ports: SharedPorts) -> None:
        self._settings = settings
        self._command = command
        self._state = state
        self._ports = ports
        self._workers: dict[int, WorkerProcess] = {}
        self._stopping = asyncio.Event()
        self._asked_at: float | None = None
        self._exit_code = 0

    async def run(self) -> int:
        """Returns the exit code: 0, or that of a worker that failed during the start."""
        self._handle_signals()
        numbers = range(self._settings.workers)
        # The first worker starts alone: if it cannot start, none can, and its error is printed once.
        if await self._start_first([0]) and await self._start_first(numbers[1:]):
            self._publish(stopping=False)
            keeping = [asyncio.create_task(self._keep(number)) for number in numbers]
            await self._stopping.wait()
            self._publish(stopping=True)
            await asyncio.gather(*keeping)
        else:
            self._stopping.set()
            self._signal_all(signal.SIGTERM)
            await asyncio.gather(*(self._end(worker) for worker in self._workers.values()))
        return self._exit_code

    async def _start_first(self, numbers: Sequence[int]) -> bool:
        """Starts the first workers of the service. Returns False if one of them ended or the service has to stop."""
        for number in numbers:
            self._workers[number] = await self._start(number, announces=number == 0)
        started = [self._workers[number] for number in numbers]
        return all(await asyncio.gather(*(self._became_ready(worker) for worker in started)))

    async def _became_ready(self, worker: WorkerProcess) -> bool:
        ready = asyncio.create_task(worker.is_ready.wait())
        ended = asyncio.create_task(worker.ended())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([ready, ended, stopping], return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and not self._stopping.is_set():
                code = ended.result()
                self._exit_code = self._exit_code or (code if code > 0 else 1)
            return ready.done() and not ended.done()
        finally:
            for task in (ready, ended, stopping):
                task.cancel()

    async def _start(self, number: int, *, announces: bool = False) -> WorkerProcess:
        settings = self._settings
        directory = worker_directory(self._state.path, number)

        def slot(descriptor: int) -> WorkerSlot:
            return WorkerSlot(
                number=number,
                count=settings.workers,
                name=f"{settings.machine_name}.{number}",
                port=self._ports.port,
                http_port=self._ports.http_port,
                directory=str(directory),
                supervisor_fd=descriptor,
                announces=announces,
            )

        return await start_worker(self._command, slot, self._reload_others)

    async def _keep(self, number: int) -> None:
        """Restarts the worker whenever it has ended, until the service stops."""
        policy = RestartPolicy()
        while True:
            worker = self._workers[number]
            code = await self._end(worker)
            if self._stopping.is_set():
                return
            delay_s = policy.delay_s(ran_s=worker.ran_s, fenced=code == EXIT_FENCED)
            _log.warning("worker ended", worker=number, pid=worker.pid, exit_code=code, restart_in_s=delay_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._stopping.wait()
                    return
            try:
                self._workers[number] = await self._start(number)
            except (OSError, StateError) as error:
                _log.error("worker cannot be started", worker=number, reason=str(error))
            if self._stopping.is_set():  # the signal came before the new process was known
                self._workers[number].signal(signal.SIGTERM)

    async def _end(self, worker: WorkerProcess) -> int:
        """Waits for the end of a worker, and kills it if it does not end in time after the stop."""
        ended = asyncio.create_task(worker.ended())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([ended, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        within_s = self._settings.grace_period_s + SHUTDOWN_MARGIN_S + _KILL_MARGIN_S
        done, _ = await asyncio.wait([ended], timeout=within_s)
        if not done:
            _log.error("worker does not end; killed", pid=worker.pid)
            worker.signal(signal.SIGKILL)
        return await ended

    def _publish(self, *, stopping: bool) -> None:
        settings = self._settings
        address = DaemonAddress(
            os.getpid(),
            settings.host,
            self._ports.port,
            self._ports.http_port,
            settings.tls_cert is not None,
            settings.auth,
            __version__,
            settings.grace_period_s,
        )
        try:
            self._state.write_address(replace(address, stopping=stopping))
        except FullDiskError as error:
            _log.error("clients on this machine need --port until the next start", reason=str(error))

    # --- signals -----------------------------------------------------------------------------------------------------

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        bound_to_terminal = ends_with_terminal()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop, number)

        def on_hangup() -> None:
            if bound_to_terminal and not has_terminal():
                self._on_stop(signal.SIGHUP)
            else:
                self._signal_all(signal.SIGHUP)

        loop.add_signal_handler(signal.SIGHUP, on_hangup)

    def _on_stop(self, number: signal.Signals) -> None:
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
            _log.info("signal", signal=number.name)
            self._stopping.set()
        elif now - self._asked_at < SIGNAL_ECHO_S:
            return
        else:  # a second signal ends the grace period
            self._exit_code = 128 + number
        self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: signal.Signals) -> None:
        for worker in self._workers.values():
            worker.signal(number)

    def _reload_others(self, reloaded: WorkerProcess) -> None:
        """Lets the other workers reload the settings, after an operator has reloaded them through one."""
        for worker in self._workers.values():
            if worker is not reloaded:
                worker.signal(signal.SIGHUP)
