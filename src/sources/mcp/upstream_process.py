"""A server that the daemon starts: lines of JSON over its standard input and output, as MCP's stdio transport has it.

In place of the SDK's own transport, which bounds neither a line nor what is left of a server's process group.
"""

import asyncio
import os
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
from .message_lines import HEAD_BYTES, TAIL_BYTES, TOO_LONG, in_place_of, read_line
from .server_output import CHUNK_BYTES, CHUNKS_PER_S, MESSAGES_PER_S, ReadRate
from .upstream_failures import UpstreamUnavailableError

END_GRACE_S: Final = 1.5
"""A server has so long to end once its input is closed, and again once it is asked to (SIGTERM)."""

MAX_LEFT_OUT_BYTES: Final = 256 * 1024 * 1024
"""A message that is still not at its end has none: the server is given up."""

_PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""Of the daemon's environment: what programs need to run, and no secret is in."""
_LOOK_S: Final = 0.01
_OUTBOX: Final = 4096
"""Messages that may wait for a server that reads none: callers who give up must not wait behind it."""
_LAST_WORDS_S: Final = 0.5
"""How long what a server that has ended said last on standard error is waited for."""
_READ_BYTES: Final = 64 * 1024

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception],
    MemoryObjectSendStream[SessionMessage],
]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started."""

    command: Sequence[str]
    env: Mapping[str, str] = field(repr=False)
    """All of its environment."""
    cwd: Path | None
    max_line_bytes: int
    """A longer message is not read: whoever waits for it gets an error."""


def environment(named: Mapping[str, str], own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A server's environment: what the operator named, and the few variables that every program needs."""
    return {name: own[name] for name in _PASSED_ON if name in own} | dict(named)


@asynccontextmanager
async def server_process(
    launch: ServerCommand, say: Callable[[str], None], on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """Start a server, and lend the streams of its messages; ``say`` gets the lines of its standard error, and
    ``on_end`` is called when it says no more.

    On the way out it is ended, with all that is in its process group.

    Raises:
        OSError: it cannot be started.
    """
    loop = asyncio.get_running_loop()
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
    process = Process(transport, protocol, loop)
    inbox, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outbox = anyio.create_memory_object_stream[SessionMessage](_OUTBOX)
    pace, last_words = ReadRate(MESSAGES_PER_S), _StderrTail(say)
    reading = asyncio.create_task(_read(process, inbox, say, pace), name="server's output")
    writing = asyncio.create_task(_write(process, outbox, pace), name="server's input")
    listening = asyncio.create_task(_listen(process, last_words.hear), name="server's errors")
    reading.add_done_callback(lambda _: on_end())
    try:
        yield received, sent
    except Exception as error:
        if reading.done():  # whatever went wrong, this is why
            raise UpstreamUnavailableError(await _how_it_ended(process, reading, listening, last_words)) from error
        raise
    finally:
        try:
            await _end(process)
        finally:
            _signal(process, signal.SIGKILL)  # all that is left of its group, also where this is cancelled once more
            for task in (reading, writing, listening):
                task.cancel()
            transport.close()
            for stream in (inbox, received, sent, outbox):
                stream.close()
        await asyncio.gather(reading, writing, listening, return_exceptions=True)


class _StderrTail:
    """Passes lines on, and keeps the last one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.line = ""

    def hear(self, line: str) -> None:
        self.line = line
        self._say(line)


async def _how_it_ended(
    process: Process, reading: asyncio.Task[None], listening: asyncio.Task[None], last_words: _StderrTail
) -> str:
    """Why a server says no more, in a few words for the operator."""
    failure = None if reading.cancelled() else reading.exception()
    if failure is not None:
        return str(failure)
    if not await _ended_within(process, END_GRACE_S):
        return "it has closed its output"
    await asyncio.wait([listening], timeout=_LAST_WORDS_S)
    status = process.returncode or 0
    how = f"exit status {status}" if status >= 0 else f"signal {-status}"
    said = one_line(last_words.line, 200)
    return f"its program has ended ({how})" + (f", and said last: {said}" if said else "")


async def _read(
    process: Process,
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    say: Callable[[str], None],
    pace: ReadRate,
) -> None:
    """Pass its messages on until it ends, and close the stream then: that is how the session learns of it.

    Raises:
        AwayError: a message has no end.
    """
    assert process.stdout is not None  # noqa: S101 - it is started with pipes
    with inbox, suppress(anyio.BrokenResourceError, ConnectionError):
        while True:
            await _keep_to(pace.consume())
            try:
                line = await process.stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError as error:
                await _leave_out(process.stdout, error.consumed, inbox, say)
                continue
            message = read_line(line)
            if message is not None:
                await inbox.send(message)
            elif line.strip():
                say(f"not MCP: {line[:_READ_BYTES].decode(errors='replace').rstrip()}")


async def _keep_to(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


async def _leave_out(
    stream: asyncio.StreamReader,
    consumed: int,
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    say: Callable[[str], None],
) -> None:
    """Skip a message that is too long. Who waits for it gets an error, at once where its begin says who that is."""
    head = tail = b""
    told, skipped = False, 0
    while True:
        piece = await stream.readexactly(max(consumed, 1))
        skipped += len(piece)
        if skipped > MAX_LEFT_OUT_BYTES:
            raise UpstreamUnavailableError(f"it sends a message of more than {MAX_LEFT_OUT_BYTES // 1024**2} MiB")
        head, tail = head or piece[:HEAD_BYTES], (tail + piece[-TAIL_BYTES:])[-TAIL_BYTES:]
        if not told and (error := in_place_of(head, b"", TOO_LONG, "the answer is too long")) is not None:
            told = True
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
    if not told:
        error = in_place_of(head, tail, TOO_LONG, "the answer is too long")
        if error is None:
            say(f"a message of {skipped:,} bytes was left out, and it is not known whose it is")
        else:
            await inbox.send(error)


async def _write(process: Process, outbox: MemoryObjectReceiveStream[SessionMessage], pace: ReadRate) -> None:
    assert process.stdin is not None  # noqa: S101 - it is started with pipes
    with outbox, suppress(ConnectionError):
        async for sending in outbox:
            line = sending.message.model_dump_json(by_alias=True, exclude_unset=True)
            pace.add_request()
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _listen(process: Process, say: Callable[[str], None]) -> None:
    """Read its standard error as it comes, some megabytes a second, so that it never waits for us for long."""
    assert process.stderr is not None  # noqa: S101 - it is started with pipes
    begun, pace = b"", ReadRate(CHUNKS_PER_S)
    while piece := await process.stderr.read(_READ_BYTES):
        await _keep_to(pace.consume(1 + len(piece) // CHUNK_BYTES))
        *lines, begun = (begun + piece).split(b"\n")
        begun = begun[:_READ_BYTES]
        for line in lines:
            if line.strip():
                say(line.decode(errors="replace").rstrip())
    if begun.strip():
        say(begun.decode(errors="replace").rstrip())


async def _end(process: Process) -> None:
    """Close its input, ask it to end, end it: each once the one before has not helped."""
    assert process.stdin is not None  # noqa: S101 - it is started with pipes
    process.stdin.close()
    if not await _ended_within(process, END_GRACE_S):
        _signal(process, signal.SIGTERM)
        if not await _ended_within(process, END_GRACE_S):
            _signal(process, signal.SIGKILL)
            await _ended_within(process, END_GRACE_S)


async def _ended_within(process: Process, seconds: float) -> bool:
    # Not process.wait(): it may wait for whoever has inherited the pipes as well.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while process.returncode is None:  # noqa: ASYNC110 - there is nothing to be told by
                await asyncio.sleep(_LOOK_S)
    return process.returncode is not None


def _signal(process: Process, number: signal.Signals) -> None:
    """To the server and all that it started, which is its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
