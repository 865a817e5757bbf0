"""The served registry for the daemon: its entries, the agents of it that are hosted here, and its server."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..agent_registry import RegistryWatch
from ..protocol.authorization import Authenticate
from ..served_registry import Kind, RegistryLibrary, RegistryRefusedError, ServedAgents
from ..store import Store
from ..tools import ToolCatalog
from .config import settings_mapping
from .config.settings import Settings
from .hosted_registries import HostedRegistries
from .transports.http_intake import HttpIntake
from .transports.registry import REGISTRY_PREFIX, RegistryOperations, RegistryServer, methods_of


class RegistryHost:
    """The parts of the registry that outlive a request. The entries are loaded even while it is not served, so that a
    reload can switch it on."""

    def __init__(
        self, store: Store, settings: Callable[[], Settings], agents_changed: Callable[[], Awaitable[None]]
    ) -> None:
        """``agents_changed`` hosts the agents that ``served`` has now, and returns once they can be called."""
        self._store = store
        self._settings = settings
        self._agents_changed = agents_changed
        self.library = RegistryLibrary(store.registry_entries, self._changed)
        self.served = ServedAgents(settings_mapping.served_registry(settings()))

    def together_with(self, watch: RegistryWatch) -> HostedRegistries:
        """The agents of both registries."""
        return HostedRegistries(watch, self.served)

    async def load(self) -> None:
        """Reads the entries, and hosts agents of them.

        Raises:
            StoreError: the database cannot be read.
        """
        await self.library.load()
        await self._changed(Kind.AGENT)

    def server(
        self, intake: HttpIntake, catalog: Callable[[], ToolCatalog], authenticate: Authenticate
    ) -> RegistryServer:
        """The server of its routes."""
        operations = RegistryOperations(
            self.library,
            catalog,
            store_problem=lambda: self._store.problem,
            traced=lambda: self._settings().otel is not None,
        )
        return RegistryServer(
            intake,
            operations,
            origins=self._settings().allowed_origins,
            authenticate=authenticate,
        )

    def serves(self, path: str, method: str) -> bool:
        """Whether a request to the HTTP port belongs to the registry. At the root, it leaves other paths and methods
        to the protocols that have them too, such as A2A.
        """
        prefixes = settings_mapping.registry_prefixes(self._settings())
        if path == REGISTRY_PREFIX or path.startswith(f"{REGISTRY_PREFIX}/"):
            return REGISTRY_PREFIX in prefixes
        methods = () if "" not in prefixes or path.endswith("/") else methods_of(path)
        return method in methods or (method == "OPTIONS" and bool(methods))

    def apply(self, settings: Settings) -> None:
        """Uses other settings. The caller hosts the agents that ``served`` has then."""
        self.served.apply(settings_mapping.served_registry(settings))
        if self.library.is_loaded:
            self.served.update(self.library.content)

    def prompt(self, ref: str) -> Mapping[str, Any] | None:
        """The newest version of a prompt, if the registry is served and has it."""
        if not settings_mapping.registry_prefixes(self._settings()):
            return None
        try:
            content = self.library.content
            return content.view(Kind.PROMPT, content.newest(Kind.PROMPT, ref))
        except RegistryRefusedError:
            return None

    async def _changed(self, kind: Kind) -> None:
        if kind in {Kind.AGENT, Kind.TOOL}:
            self.served.update(self.library.content)
            await self._agents_changed()
