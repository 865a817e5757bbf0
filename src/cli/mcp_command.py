"""``toold mcp``: an MCP server over stdio, started by an editor."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

import click

from ..protocol.tool_call import MAX_FRAME_BYTES
from .bridge import DaemonStarter, LineChannel, StdioBridge
from .daemon_connection import toolset_option

_POLL_S: Final = 1.0


@click.command()
@toolset_option
def command(toolset: str | None) -> None:
    """Serve MCP over stdin and stdout. Editors start and stop this command; `toold install` registers it with them.

    Calls go to the daemon of the state directory. If none runs, one is started, and it keeps running when the editor
    exits. Sessions resume after a daemon restart. Only MCP messages go to stdout; diagnostics go to stderr.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="toold mcp: %(message)s")
    asyncio.run(_serve(toolset, *_take_stdio()))


def _take_stdio() -> tuple[int, int]:
    """Take over stdin and stdout, so that no other code reads from the channel or prints into it."""
    source, sink = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return source, sink


async def _serve(toolset: str | None, source: int, sink: int) -> None:
    """Serve until the editor closes its end of either pipe, exits, or sends a signal."""
    loop = asyncio.get_running_loop()
    lines = LineChannel(source, sink, MAX_FRAME_BYTES)
    bridge = StdioBridge(lines, DaemonStarter(os.environ), toolset=toolset, directory=_open_directory(Path.cwd()))
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, signalled.set)
    ends = {
        asyncio.create_task(end)
        for end in (bridge.serve(), lines.broken.wait(), signalled.wait(), _watch_parent(bridge))
    }
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await asyncio.wait(ends)
    await bridge.close()
    for end in ends:
        if not end.cancelled():
            end.result()


async def _watch_parent(bridge: StdioBridge) -> None:
    """Return when the parent process has exited; other processes may still hold its pipe open."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_POLL_S)
        await bridge.restore_connection()


def _open_directory(directory: Path) -> Path | None:
    """The editor's directory; None if unknown, because editors started from a desktop run in the root directory."""
    return None if directory == Path(directory.anchor) else directory
