"""The tools of the configured ZenML server."""

from collections.abc import Callable
from dataclasses import replace

from ..tools import Tool
from .zenml_client import ZenmlClient
from .zenml_settings import ZenmlSettings
from .zenml_tools import ZENML_SOURCE, zenml_tools


class ZenmlHost:
    """Has the tools, if a server is configured."""

    def __init__(self, settings: ZenmlSettings | None, changed: Callable[[], None]) -> None:
        """``changed`` is called when ``tools`` changes."""
        self._changed = changed
        # Clients of earlier settings, whose calls may still wait for runs.
        self._clients: list[ZenmlClient] = []
        self._set(settings)

    def _set(self, settings: ZenmlSettings | None) -> None:
        self._settings = settings
        self.tools: list[Tool] = []
        if settings is not None:
            self._clients.append(ZenmlClient(settings))
            self.tools = [replace(each, source=ZENML_SOURCE) for each in zenml_tools(self._clients[-1], settings)]

    def apply(self, settings: ZenmlSettings | None) -> None:
        """Replace the server; calls in progress keep theirs."""
        if settings != self._settings:
            self._set(settings)
            self._changed()

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.close()
