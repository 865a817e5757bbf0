"""The simulator on a loopback port, in the running event loop."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Self

from ...serving import HttpServer
from ..model_catalog import ModelCatalog
from ..provider_presets import OPENAI_TYPE
from .directives import read_directives
from .request_log import LoggedRequest, Operation, RequestLog
from .simulator_app import root_of, simulator_app


class Simulator:
    """All vendors on one port: ``async with Simulator() as sim: … sim.kimi_base_url``."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        catalog: ModelCatalog | None = None,
        providers: Iterable[str] = (),
        presets: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``port`` 0 selects a free one. ``catalog`` has the simulated models.

        ``providers`` are the names of configured providers, which accept any model. ``presets`` maps them to the
        presets in whose form they answer; without a preset, they answer in OpenAI's form.
        """
        self._host = host
        self._request_log = RequestLog()
        app = simulator_app(
            catalog or ModelCatalog.load(),
            self._request_log,
            {name: presets.get(name, OPENAI_TYPE) for name in providers},
        )
        self._server = HttpServer(app, host, port, "--port")

    def base_url(self, vendor: str) -> str:
        """Returns the base URL of one vendor's API."""
        return f"http://{self._host}:{self._server.port}{root_of(vendor)}"

    @property
    def kimi_base_url(self) -> str:
        return self.base_url("kimi")

    @property
    def glm_base_url(self) -> str:
        return self.base_url("glm")

    @property
    def log(self) -> Sequence[LoggedRequest]:
        """The chat requests among the last 200 requests, oldest first."""
        return tuple(seen for seen in self._request_log.log if seen.operation == "chat")

    @property
    def requests(self) -> Sequence[LoggedRequest]:
        """The last 200 requests of any kind, oldest first."""
        return tuple(self._request_log.log)

    def plan(self, vendor: str, operation: Operation, directives: str) -> None:
        """Applies directives to the next request of this kind, such as ``status=429 retry_after=2``.

        Raises:
            DirectiveError: a setting is unknown, or its value has the wrong type.
        """
        self._request_log.plan(vendor, operation, read_directives(f"[[sim:{directives}]]"))

    def forget_plans(self) -> None:
        """Drops planned directives that no request has used."""
        self._request_log.forget_plans()

    def in_flight(self, vendor: str) -> int:
        """Returns the number of running requests of this vendor."""
        return self._request_log.running[vendor]

    def peak(self, vendor: str) -> int:
        """Returns the highest number of concurrent requests of this vendor."""
        return self._request_log.peaks[vendor]

    async def until_in_flight(self, vendor: str, count: int) -> None:
        """Waits until exactly ``count`` requests of this vendor are running."""
        await self._request_log.until(vendor, count)

    async def __aenter__(self) -> Self:
        """Starts to listen.

        Raises:
            OSError: the port is in use.
        """
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._request_log.closing.set()
        await self._server.close()

    async def serve_forever(self) -> None:
        """Serves until the server stops or the wait is cancelled."""
        await self._server.ended()
