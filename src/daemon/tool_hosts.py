"""The tools from settings (collections of documents, a ZenML server), and the tasks that keep them up to date."""

from collections.abc import Callable
from pathlib import Path

from ..knowledge import KnowledgeHost
from ..tools import DaemonView, Tool
from ..zenml import ZenmlHost
from .background_calls import call_in_background
from .config import settings_mapping
from .config.settings import Settings
from .dispatch import Router


class ToolHosts:
    """The hosts of these tools."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        state_directory: Path,
        view: Callable[[], DaemonView],
        router: Callable[[], Router],
        changed: Callable[[], None],
    ) -> None:
        """``changed`` is called when ``tools`` changes."""
        self.knowledge = KnowledgeHost(
            settings().knowledge,
            state_directory,
            files_of=lambda folder: settings_mapping.folder_access(settings(), folder),
            model_id=lambda name: view().catalog.resolve(name).id,
            call=lambda *call, timeout_s: call_in_background(router(), *call, timeout_s=timeout_s),
            changed=changed,
        )
        self.zenml = ZenmlHost(settings().zenml, changed)

    @property
    def tools(self) -> list[Tool]:
        """The tools of all hosts."""
        return [*self.knowledge.tools, *self.zenml.tools]

    def apply(self, settings: Settings) -> None:
        """Apply reloaded settings."""
        self.knowledge.apply(settings.knowledge)
        self.zenml.apply(settings.zenml)

    async def close(self) -> None:
        """Close the database of the collections and the connections to servers."""
        await self.knowledge.close()
        await self.zenml.close()
