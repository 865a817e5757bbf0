"""``toold mcp``: an MCP server over stdio, for an editor that starts it."""

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

_LOOK_EVERY_S: Final = 1.0


@click.command(short_help="Serve an editor over stdio, by MCP; the editor starts it.")
@toolset_option
def command(toolset: str | None) -> None:
    """Speak MCP over stdin and stdout, for an editor that starts this and stops it.

    Calls go to the daemon of the state directory, which is started where none runs, and stays when the editor goes; one
    that is restarted is gone on with. Only MCP's messages go to stdout; what there is to say besides goes to stderr.
    `toold install` tells editors of it.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="toold mcp: %(message)s")
    asyncio.run(_serve(toolset, *_take_stdio()))


def _take_stdio() -> tuple[int, int]:
    """Both ends of the channel, out of reach of whatever prints or reads besides."""
    source, sink = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return source, sink


async def _serve(toolset: str | None, source: int, sink: int) -> None:
    """Until the editor closes its end, takes no more, dies, or says so by a signal."""
    loop = asyncio.get_running_loop()
    lines = LineChannel(source, sink, MAX_FRAME_BYTES)
    bridge = StdioBridge(lines, DaemonStarter(os.environ), toolset=toolset, directory=_open_directory(Path.cwd()))
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, told.set)
    ends = {
        asyncio.create_task(end) for end in (bridge.serve(), lines.broken.wait(), told.wait(), _while_parent(bridge))
    }
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await asyncio.wait(ends)
    await bridge.close()
    for end in ends:
        if not end.cancelled():
            end.result()


async def _while_parent(bridge: StdioBridge) -> None:
    """Return once the process that started this one is gone. Its pipe may be held open by others still."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_LOOK_EVERY_S)
        await bridge.keep_up()


def _open_directory(directory: Path) -> Path | None:
    """The directory that the editor works in, as far as that is known: started from a desktop, it is the root."""
    return None if directory == Path(directory.anchor) else directory
