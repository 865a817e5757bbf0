"""The tools of the configured ZenML server."""

from collections.abc import Callable
from dataclasses import replace

from ..tools import Tool
from .run_stops import RunStops
from .zenml_client import ZenmlClient
from .zenml_settings import ZenmlSettings
from .zenml_tools import ZENML_SOURCE, zenml_tools


class ZenmlHost:
    """Holds the tools, if a server is configured."""

    def __init__(self, settings: ZenmlSettings | None, changed: Callable[[], None]) -> None:
        """``changed`` is called when ``tools`` changes."""
        self._changed = changed
        # Clients of earlier settings, whose calls may still wait for runs.
        self._clients: list[tuple[ZenmlClient, RunStops]] = []
        self._set(settings)

    def _set(self, settings: ZenmlSettings | None) -> None:
        self._settings = settings
        self.tools: list[Tool] = []
        if settings is not None:
            client = ZenmlClient(settings)
            stops = RunStops(client, settings.poll_s)
            self._clients.append((client, stops))
            self.tools = [replace(each, source=ZENML_SOURCE) for each in zenml_tools(client, settings, stops)]

    def apply(self, settings: ZenmlSettings | None) -> None:
        """Replaces the server; calls in progress keep the old one."""
        if settings != self._settings:
            self._set(settings)
            self._changed()

    async def close(self) -> None:
        """Ends the stops of runs, and closes the connections."""
        for client, stops in self._clients:
            await stops.close()
            await client.close()
