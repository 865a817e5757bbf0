"""The simulator on a loopback port, within the running loop."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Sequence
from typing import Self

import uvicorn

from ..catalogue import Catalogue, ProviderName
from .app import Census, Seen, simulator_app


class _Server(uvicorn.Server):
    """Leaves the process's signals to those who run it, and says when it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()


class Simulator:
    """Both vendors on one port: ``async with Simulator() as sim: … sim.kimi_base_url``."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, catalogue: Catalogue | None = None) -> None:
        """``port`` 0 takes a free one; ``catalogue`` says which models there are."""
        self._host = host
        self._port = port
        self._catalogue = catalogue or Catalogue.load()
        self._census = Census()
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def kimi_base_url(self) -> str:
        return f"http://{self._host}:{self._port}/kimi/v1"

    @property
    def glm_base_url(self) -> str:
        return f"http://{self._host}:{self._port}/glm/api/paas/v4"

    @property
    def log(self) -> Sequence[Seen]:
        """The last 200 chat requests, oldest first."""
        return tuple(self._census.log)

    def in_flight(self, vendor: ProviderName) -> int:
        """How many chat requests of this vendor run now."""
        return self._census.running[vendor]

    def peak(self, vendor: ProviderName) -> int:
        """How many of them have run at once."""
        return self._census.peaks[vendor]

    async def until_in_flight(self, vendor: ProviderName, count: int) -> None:
        """Wait until exactly ``count`` chat requests of this vendor run."""
        await self._census.until(vendor, count)

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            OSError: the port is taken.
        """
        listener = _listener(self._host, self._port)
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            simulator_app(self._catalogue, self._census),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve([listener]), name="simulator")
        await self._server.ready.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is None or self._serving is None:
            return
        self._census.closing.set()
        self._server.should_exit = True
        await self._serving

    async def serve_forever(self) -> None:
        """Serve until the server stops or the waiting is cancelled."""
        if self._serving is not None:
            await asyncio.shield(self._serving)


def _listener(host: str, port: int) -> socket.socket:
    """A listening socket whose protocol is named, or asyncio would leave Nagle's delay on: 40 ms an answer."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
