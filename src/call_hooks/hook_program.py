"""A hook that is a program. It runs as long as the daemon, reads one line of JSON per question, and writes one per
answer.

Answers may come in any order. A program that ends or hangs is started again.
"""

import asyncio
import random
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from typing import Final, NamedTuple

import structlog

from ..protocol.backoff import backoff_s
from ..protocol.terminal_text import one_line
from ..sources import ReadRate, ServerLog, end_program, ended_within, environment, signal_group
from ..tools import SecretLocation, SecretUnavailableError
from .hook_messages import MAX_QUESTION_BYTES, HookAnswerError, answer_id
from .hook_settings import HookSettings

FIRST_RESTART_S: Final = 0.5
MAX_RESTART_S: Final = 30.0
"""The maximum delay before a program is started again; the first delay is ``FIRST_RESTART_S``."""
STABLE_S: Final = 10.0
"""A program that ran this long resets the delay."""
_LINE_EXTRA_BYTES: Final = 64 * 1024
_EXIT_S: Final = 1.0
"""The time to wait for the exit status of a program after it has closed its output or was killed."""
_READ_BYTES: Final = 64 * 1024
_EXCESS_PER_S: Final = 1000.0
"""The number of lines without an answer, and of KiB of standard error, read per second. The rest waits in the pipe."""

_log = structlog.get_logger("toold.hooks")


class _Running(NamedTuple):
    process: Process
    transport: asyncio.SubprocessTransport


class HookProgram:
    """Implements ``HookBackend``."""

    def __init__(self, name: str, settings: HookSettings) -> None:
        self._name = name
        self._settings = settings
        self._process: Process | None = None
        self._problem: str | None = None
        """Why the program does not run; None during its first start."""
        self._changed = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._asked = 0
        self._answers = 0
        self._writing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<HookProgram {self._name}, {'running' if self._process else 'not running'}>"

    async def run(self) -> None:
        """Keeps the program running until it is cancelled."""
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            started = loop.time()
            reason = await self._serve()
            _log.warning("hook ended", hook=self._name, reason=reason)
            failures = 0 if loop.time() - started >= STABLE_S else failures + 1
            draw = random.random()  # noqa: S311 - spreads restarts
            await asyncio.sleep(backoff_s(failures, draw, base_s=FIRST_RESTART_S, cap_s=MAX_RESTART_S))

    async def ask(self, question: bytes, seconds: float) -> bytes:
        """Returns the answer to a question, which has no ``id`` yet.

        When the time is over, a program that has not answered anything since it got the question is killed.

        Raises:
            HookAnswerError: there is no answer.
        """
        answers, process = self._answers, self._process
        try:
            async with asyncio.timeout(seconds):
                return await self._ask(question)
        except TimeoutError:
            if process is not None and process is self._process and answers == self._answers:
                signal_group(process, signal.SIGKILL)
            raise HookAnswerError(f"it did not answer within {round(seconds, 2):g} s") from None

    async def _ask(self, question: bytes) -> bytes:
        process = await self._started()
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._write(process, b'{"id":%d,' % number + question[1:] + b"\n")
            return await answer
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """Does nothing: ``run`` ends the program."""

    async def _started(self) -> Process:
        """Returns the program; waits for its first start.

        Raises:
            HookAnswerError: the program does not run.
        """
        while self._process is None and self._problem is None:
            await self._changed.wait()
        if self._process is None:
            raise HookAnswerError(self._problem or "its program does not run")
        return self._process

    async def _write(self, process: Process, line: bytes) -> None:
        assert process.stdin is not None  # noqa: S101 - started with pipes
        async with self._writing:
            try:
                process.stdin.write(line)
                await process.stdin.drain()
            except (ConnectionError, RuntimeError):
                raise HookAnswerError("its program has closed its input") from None

    async def _serve(self) -> str:
        """Runs the program until it ends; returns why."""
        log, running = ServerLog(f"hook {self._name}", lambda text: text), None
        reason = "the daemon is stopping, or its settings have changed"
        try:
            running = await self._start()
            self._set(running.process, None)
            listening = asyncio.create_task(_listen(running.process, log))
            try:
                reason = await self._read(running.process, log)
            finally:
                listening.cancel()
        except (OSError, SecretUnavailableError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            reason = f"its program cannot be started: {why}"
        finally:
            self._set(None, reason)
            if running is not None:
                await _end(running)
        return reason

    def _set(self, process: Process | None, problem: str | None) -> None:
        self._process, self._problem = process, problem
        self._changed.set()
        if problem is not None:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(HookAnswerError(problem))

    async def _start(self) -> _Running:
        settings, loop = self._settings, asyncio.get_running_loop()
        variables = {
            name: await asyncio.to_thread(value.read) if isinstance(value, SecretLocation) else value
            for name, value in settings.env.items()
        }
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=MAX_QUESTION_BYTES + _LINE_EXTRA_BYTES, loop=loop),
            *(settings.command or ()),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment(variables),
            cwd=settings.cwd,
            start_new_session=True,
        )
        return _Running(Process(transport, protocol, loop), transport)

    async def _read(self, process: Process, log: ServerLog) -> str:
        """Passes answers on until the program's output ends; returns why."""
        assert process.stdout is not None  # noqa: S101 - started with pipes
        excess = ReadRate(_EXCESS_PER_S)
        while True:
            try:
                line = await process.stdout.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                return f"its program wrote a line of more than {MAX_QUESTION_BYTES // 1024**2} MiB"
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            number = answer_id(line)
            answer = None if number is None else self._waiting.get(number)
            if number is not None:
                self._answers += 1
            if answer is not None and not answer.done():
                answer.set_result(line)
                continue
            if number is None and line.strip():
                log.write(f"not an answer: {line[:_READ_BYTES].decode(errors='replace').rstrip()}")
            await asyncio.sleep(excess.consume())
        if not await ended_within(process, _EXIT_S):
            return "its program has closed its output"
        status = process.returncode or 0
        return f"its program has ended ({f'exit status {status}' if status >= 0 else f'signal {-status}'})"


async def _listen(process: Process, log: ServerLog) -> None:
    """Logs the program's standard error."""
    assert process.stderr is not None  # noqa: S101 - started with pipes
    partial, rate = b"", ReadRate(_EXCESS_PER_S)
    while chunk := await process.stderr.read(_READ_BYTES):
        await asyncio.sleep(rate.consume(1 + len(chunk) // 1024))
        *lines, partial = (partial + chunk).split(b"\n")
        partial = partial[:_READ_BYTES]
        for line in lines:
            if line.strip():
                log.write(one_line(line.decode(errors="replace"), _READ_BYTES))


async def _end(running: _Running) -> None:
    try:
        await end_program(running.process)
    finally:
        signal_group(running.process, signal.SIGKILL)  # the rest of its group, even if this is cancelled again
        running.transport.close()
        await ended_within(running.process, _EXIT_S)
