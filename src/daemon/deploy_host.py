"""Creates the daemon's deployments: their service, targets and tools."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ..deployment import DEPLOYMENTS_DIRECTORY, DeploymentRecords, DeploymentService, deploy_tools
from ..deployment.cloud_run_target import CloudRunTarget
from ..deployment.here_target import HereTarget
from ..prompts import PromptChain
from ..tools import Agent, Tool, ToolRegistry
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .persistence.key_files import DEPLOY_KEY_FILE, load_or_create_keys
from .persistence.state_directory import StateDirectory, StateError


class DeployHost:
    """Implements ``AgentHosting``. ``update`` hosts the deployed agents, once the daemon's parts exist."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        state: StateDirectory,
        prompts: PromptChain,
        *,
        registered: Callable[[], ToolRegistry],
        update: Callable[[], Awaitable[None]],
        http_port: Callable[[], int],
    ) -> None:
        """``registered`` returns the current tools; ``update`` hosts the current deployed agents."""
        self._settings = settings
        self.list_prompts = prompts.listed
        self._registered = registered
        self._update = update
        self._http_port = http_port
        records = DeploymentRecords(state.path / DEPLOYMENTS_DIRECTORY)
        self.service = DeploymentService(
            settings().deploy, records, prompts, self, registry=lambda: settings().registry
        )
        self.service.targets["here"] = HereTarget(self.service)
        self._cloud_run: CloudRunTarget | None = None
        deploy = settings().deploy
        if deploy is not None and deploy.cloud_run is not None:
            target = CloudRunTarget(self.service, deploy, deploy.cloud_run, _secret(state))
            self.service.targets["cloud-run"] = self._cloud_run = target
        self.tools: Sequence[Tool] = deploy_tools(self.service)

    def deployed(self, configured: Mapping[str, Agent]) -> Mapping[str, Agent]:
        """The agents to host next to those of the settings."""
        return self.service.agents(configured)

    async def close(self) -> None:
        """Close the connections to other systems."""
        if self._cloud_run is not None:
            await self._cloud_run.close()

    # --- AgentHosting ------------------------------------------------------------------------------------------------

    def has_name(self, name: str) -> bool:
        return name in self._registered()

    async def publish(self) -> None:
        await self._update()

    def url_of(self, name: str) -> str:
        settings = self._settings()
        origin = settings.a2a_url or f"http://{settings.host}:{self._http_port()}"
        return f"{origin.rstrip('/')}/agents/{name}"


def _secret(state: StateDirectory) -> bytes:
    """
    Raises:
        SettingsError: the file cannot be used.
    """
    remedy = "remove it, and the next start makes one. Earlier deployments then keep their keys"
    try:
        (key,) = load_or_create_keys(state.path / DEPLOY_KEY_FILE, max_keys=1, remedy=remedy)
    except StateError as error:
        raise SettingsError(f"deploy: {error}") from None
    return key
