"""The simulator on a loopback port, within the running loop."""

from collections.abc import Sequence
from typing import Self

from ...serving import HttpServer
from ..model_catalog import ModelCatalog, ProviderName
from .directives import read_directives
from .request_log import LoggedRequest, Operation, RequestLog
from .simulator_app import simulator_app


class Simulator:
    """Both vendors on one port: ``async with Simulator() as sim: … sim.kimi_base_url``."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, catalog: ModelCatalog | None = None) -> None:
        """``port`` 0 takes a free one; ``catalog`` says which models there are."""
        self._host = host
        self._census = RequestLog()
        app = simulator_app(catalog or ModelCatalog.load(), self._census)
        self._server = HttpServer(app, host, port, "--port")

    @property
    def kimi_base_url(self) -> str:
        return f"http://{self._host}:{self._server.port}/kimi/v1"

    @property
    def glm_base_url(self) -> str:
        return f"http://{self._host}:{self._server.port}/glm/api/paas/v4"

    @property
    def log(self) -> Sequence[LoggedRequest]:
        """The chat requests among the last 200 requests, oldest first."""
        return tuple(seen for seen in self._census.log if seen.operation == "chat")

    @property
    def requests(self) -> Sequence[LoggedRequest]:
        """The last 200 requests of any kind, oldest first."""
        return tuple(self._census.log)

    def plan(self, vendor: ProviderName, operation: Operation, directives: str) -> None:
        """Have the next such request obey what stands in ``[[sim:…]]`` elsewhere, such as ``status=429 retry_after=2``.

        Raises:
            DirectiveError: a setting is unknown, or its value is not of its kind.
        """
        self._census.plan(vendor, operation, read_directives(f"[[sim:{directives}]]"))

    def in_flight(self, vendor: ProviderName) -> int:
        """How many requests of this vendor run now."""
        return self._census.running[vendor]

    def peak(self, vendor: ProviderName) -> int:
        """How many of them have run at once."""
        return self._census.peaks[vendor]

    async def until_in_flight(self, vendor: ProviderName, count: int) -> None:
        """Wait until exactly ``count`` requests of this vendor run."""
        await self._census.until(vendor, count)

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            OSError: the port is taken.
        """
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._census.closing.set()
        await self._server.close()

    async def serve_forever(self) -> None:
        """Serve until the server stops or the waiting is cancelled."""
        await self._server.ended()
