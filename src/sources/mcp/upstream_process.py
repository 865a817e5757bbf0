"""An upstream server as a child process: JSON lines over standard input and output, MCP's stdio transport.

Replaces the SDK's transport, which does not limit the length of a line or clean up the process group.
"""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from ...protocol.terminal_text import one_line
from .. import program_process
from ..program_process import end_program, ended_within, signal_group
from ..read_rate import MESSAGES_PER_S, ReadRate, message_cost
from .message_lines import HEAD_BYTES, TAIL_BYTES, error_for, read_line
from .server_output import CHUNK_BYTES, CHUNKS_PER_S
from .upstream_exchange import TOO_LONG
from .upstream_failures import UpstreamUnavailableError

MAX_SKIPPED_BYTES: Final = 256 * 1024 * 1024
"""A longer message is assumed to be endless, and the server is stopped."""

_OUTBOX_MESSAGES: Final = 4096
"""The number of messages that are buffered for a server that does not read, so that cancelled callers do not block."""
_LAST_LINE_S: Final = 0.5
"""The time to wait for the last line on standard error after a server has exited."""
_READ_BYTES: Final = 64 * 1024

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception],
    MemoryObjectSendStream[SessionMessage],
]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command that starts a server."""

    command: Sequence[str]
    env: Mapping[str, str] = field(repr=False)
    """The server's complete environment."""
    cwd: Path | None
    max_line_bytes: int
    """The maximum size of a message. A longer one is skipped, and its request gets an error."""


@asynccontextmanager
async def server_process(
    launch: ServerCommand, on_log: Callable[[str], None], on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """Starts a server and yields its message streams.

    ``on_log`` receives the lines of the server's standard error; ``on_end`` is called when its output ends. On exit,
    the server's whole process group is ended.

    Raises:
        OSError: the server cannot be started.
    """
    process, transport = await _started(launch)
    inbox, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outbox = anyio.create_memory_object_stream[SessionMessage](_OUTBOX_MESSAGES)
    rate, stderr_tail = ReadRate(MESSAGES_PER_S), _StderrTail(on_log)
    reading = asyncio.create_task(_read(process, inbox, on_log, rate), name="server's output")
    writing = asyncio.create_task(_write(process, outbox, rate), name="server's input")
    listening = asyncio.create_task(_listen(process, stderr_tail.add), name="server's errors")
    reading.add_done_callback(lambda _: on_end())
    try:
        yield received, sent
    except Exception as error:
        if reading.done():  # the end of the server is the actual cause
            raise UpstreamUnavailableError(await _end_reason(process, reading, listening, stderr_tail)) from error
        raise
    finally:
        try:
            await end_program(process)
        finally:
            signal_group(process, signal.SIGKILL)  # the rest of the group, even if cancelled again
            for task in (reading, writing, listening):
                task.cancel()
            transport.close()
            for stream in (inbox, received, sent, outbox):
                stream.close()
        await asyncio.gather(reading, writing, listening, return_exceptions=True)


async def _started(launch: ServerCommand) -> tuple[Process, asyncio.SubprocessTransport]:
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=launch.max_line_bytes, loop=loop),
            *launch.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(launch.env),
            cwd=launch.cwd,
            start_new_session=True,
        )
    except FileNotFoundError as error:  # uvloop does not say which file is missing
        missing = launch.cwd if launch.cwd is not None and not launch.cwd.is_dir() else launch.command[0]
        raise FileNotFoundError(error.errno, error.strerror, str(missing)) from None
    return Process(transport, protocol, loop), transport


class _StderrTail:
    """Passes lines on, and stores the last one."""

    def __init__(self, on_log: Callable[[str], None]) -> None:
        self._on_log = on_log
        self.line = ""

    def add(self, line: str) -> None:
        self.line = line
        self._on_log(line)


async def _end_reason(
    process: Process, reading: asyncio.Task[None], listening: asyncio.Task[None], stderr_tail: _StderrTail
) -> str:
    """Returns why the server's output ended, for the operator."""
    failure = None if reading.cancelled() else reading.exception()
    if failure is not None:
        return str(failure)
    if not await ended_within(process, program_process.END_GRACE_S):
        return "it closed its output"
    await asyncio.wait([listening], timeout=_LAST_LINE_S)
    status = process.returncode or 0
    how = f"exit status {status}" if status >= 0 else f"signal {-status}"
    last_line = one_line(stderr_tail.line, 200)
    return f"its program has ended ({how})" + (f"; its last line: {last_line}" if last_line else "")


async def _read(
    process: Process,
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    on_log: Callable[[str], None],
    rate: ReadRate,
) -> None:
    """Passes the server's messages on until its output ends, and then closes the stream, which ends the session.

    Raises:
        UpstreamUnavailableError: a message is endless.
    """
    assert process.stdout is not None  # noqa: S101 - started with pipes
    with inbox, suppress(anyio.BrokenResourceError, ConnectionError):
        while True:
            try:
                line = await process.stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError as error:
                await _sleep_if_positive(rate.consume())
                await _skip_message(process.stdout, error.consumed, inbox, on_log)
                continue
            await _sleep_if_positive(rate.consume(message_cost(line)))
            message = read_line(line)
            if message is not None:
                await inbox.send(message)
            elif line.strip():
                on_log(f"not MCP: {line[:_READ_BYTES].decode(errors='replace').rstrip()}")


async def _sleep_if_positive(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


async def _skip_message(
    stream: asyncio.StreamReader,
    consumed: int,
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    on_log: Callable[[str], None],
) -> None:
    """Skips a message that is too long. Its request gets an error, at once if the message's beginning identifies it."""
    head = tail = b""
    answered, skipped = False, 0
    while True:
        chunk = await stream.readexactly(max(consumed, 1))
        skipped += len(chunk)
        if skipped > MAX_SKIPPED_BYTES:
            raise UpstreamUnavailableError(f"it sends a message of more than {MAX_SKIPPED_BYTES // 1024**2} MiB")
        head, tail = head or chunk[:HEAD_BYTES], (tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
        if not answered and (error := error_for(head, b"", TOO_LONG, "the answer is too long")) is not None:
            answered = True
            await inbox.send(error)
        try:
            rest = await stream.readuntil(b"\n")
            skipped, tail = skipped + len(rest), (tail + rest)[-TAIL_BYTES:]
        except asyncio.LimitOverrunError as overrun:
            consumed = overrun.consumed
            continue
        except asyncio.IncompleteReadError:
            pass
        break
    if not answered:
        error = error_for(head, tail, TOO_LONG, "the answer is too long")
        if error is None:
            on_log(f"skipped a message of {skipped:,} bytes; its request is unknown")
        else:
            await inbox.send(error)


async def _write(process: Process, outbox: MemoryObjectReceiveStream[SessionMessage], rate: ReadRate) -> None:
    assert process.stdin is not None  # noqa: S101 - started with pipes
    with outbox, suppress(ConnectionError):
        async for sending in outbox:
            line = sending.message.model_dump_json(by_alias=True, exclude_unset=True)
            rate.add_request()
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _listen(process: Process, on_log: Callable[[str], None]) -> None:
    """Reads the server's standard error at up to some megabytes per second, so that the server does not block for
    long.
    """
    assert process.stderr is not None  # noqa: S101 - started with pipes
    partial, rate = b"", ReadRate(CHUNKS_PER_S)
    while chunk := await process.stderr.read(_READ_BYTES):
        await _sleep_if_positive(rate.consume(1 + len(chunk) // CHUNK_BYTES))
        *lines, partial = (partial + chunk).split(b"\n")
        partial = partial[:_READ_BYTES]
        for line in lines:
            if line.strip():
                on_log(line.decode(errors="replace").rstrip())
    if partial.strip():
        on_log(partial.decode(errors="replace").rstrip())
