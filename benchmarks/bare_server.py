"""The bare server: ``websockets`` on the same loop as the daemon, which echoes every frame and does nothing else.

``python -m benchmarks.bare_server`` prints its port and serves until it is terminated.
"""

import asyncio
from typing import Final

import uvloop
from websockets.asyncio.server import ServerConnection, serve

WAIT_S: Final = 0.05


async def echo(connection: ServerConnection) -> None:
    """Echo each message, after 50 ms on the path ``/wait``."""
    assert connection.request is not None
    wait = connection.request.path == "/wait"
    async for message in connection:
        if wait:
            await asyncio.sleep(WAIT_S)
        await connection.send(message)


async def main() -> None:
    """Serve on a free loopback port, with the daemon's settings for pings, sizes and compression."""
    async with serve(
        echo, "127.0.0.1", 0, compression=None, ping_interval=20, ping_timeout=20, max_size=20 * 1024 * 1024
    ) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(main())
