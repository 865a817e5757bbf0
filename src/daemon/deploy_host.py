"""Deployments for the daemon: their service, targets and tools, made from the daemon's parts."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ..deployment import DEPLOYMENTS_DIRECTORY, DeploymentRecords, DeploymentService, deploy_tools
from ..deployment.here_target import HereTarget
from ..tools import Agent, PromptSource, Tool, ToolRegistry
from .config.settings import Settings
from .persistence.state_directory import StateDirectory


class DeployHost:
    """Implements ``AgentHosting``. ``update`` hosts the deployed agents, once the daemon's parts are there."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        state: StateDirectory,
        prompts: PromptSource,
        *,
        registered: Callable[[], ToolRegistry],
        update: Callable[[], Awaitable[None]],
        http_port: Callable[[], int],
    ) -> None:
        """``registered`` returns the tools of now; ``update`` hosts the deployed agents of now."""
        self._settings = settings
        self._registered = registered
        self._update = update
        self._http_port = http_port
        records = DeploymentRecords(state.path / DEPLOYMENTS_DIRECTORY)
        self.service = DeploymentService(
            settings().deploy, records, prompts, self, registry=lambda: settings().registry
        )
        self.service.targets["here"] = HereTarget(self.service)
        self.tools: Sequence[Tool] = deploy_tools(self.service)

    def deployed(self, configured: Mapping[str, Agent]) -> Mapping[str, Agent]:
        """The agents to host next to those of the settings."""
        return self.service.agents(configured)

    # --- AgentHosting ------------------------------------------------------------------------------------------------

    def has_name(self, name: str) -> bool:
        return name in self._registered()

    async def publish(self) -> None:
        await self._update()

    def url_of(self, name: str) -> str:
        settings = self._settings()
        origin = settings.a2a_url or f"http://{settings.host}:{self._http_port()}"
        return f"{origin.rstrip('/')}/agents/{name}"
