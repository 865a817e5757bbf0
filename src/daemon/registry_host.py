"""The parts of the served registry: its entries, its hosted agents, and its server."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ..agent_registry import RegistryWatch
from ..protocol.authorization import Authenticate
from ..served_registry import (
    Kind,
    LiteLlmRegistration,
    RegistryLibrary,
    RegistryRefusedError,
    ServedAgents,
    plan_of,
    remote_tools,
)
from ..store import Store
from ..tools import ArchitecturePlan, Tool, architecture_tool
from .config import settings_mapping
from .config.settings import Settings
from .dispatch import Router
from .hosted_registries import HostedRegistries
from .transports.http_intake import HttpIntake
from .transports.registry import REGISTRY_PREFIX, TRANSPORT, RegistryOperations, RegistryServer, methods_of
from .transports.tool_calls import ToolCalls


class RegistryHost:
    """The parts of the registry that outlive a request. The entries are loaded even while the registry is not served,
    so that a reload can turn it on."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], Settings],
        agents_changed: Callable[[], Awaitable[None]],
        tools_changed: Callable[[], None],
    ) -> None:
        """``agents_changed`` hosts the current agents of ``served``, and returns once they and ``tools`` can be called.
        If ``tools`` has changed, ``tools_changed`` is called first.
        """
        self._store = store
        self._settings = settings
        self._agents_changed = agents_changed
        self._tools_changed = tools_changed
        self._shown: Sequence[Tool] = ()
        self.library = RegistryLibrary(store.registry_entries, self._changed)
        self.served = ServedAgents(settings_mapping.served_registry(settings()))
        self.registration = LiteLlmRegistration(settings_mapping.litellm_of_registry(settings()))
        self._invoke = architecture_tool(self._plan)

    def together_with(self, watch: RegistryWatch) -> HostedRegistries:
        """The agents of both registries."""
        return HostedRegistries(watch, self.served, self.registration)

    async def load(self) -> None:
        """Reads the entries, and hosts agents of them.

        Raises:
            StoreError: the database cannot be read.
        """
        await self.library.load()
        await self._changed(Kind.AGENT)

    def server(self, intake: HttpIntake, router: Router, authenticate: Authenticate) -> RegistryServer:
        """The server of its routes."""
        operations = RegistryOperations(
            self.library,
            lambda: router.catalog,
            ToolCalls(router, TRANSPORT),
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
        """Whether a request to the HTTP port belongs to the registry. At the root, other protocols, such as A2A, get
        the paths and methods that the registry does not have.
        """
        prefixes = settings_mapping.registry_prefixes(self._settings())
        if path == REGISTRY_PREFIX or path.startswith(f"{REGISTRY_PREFIX}/"):
            return REGISTRY_PREFIX in prefixes
        methods = () if "" not in prefixes or path.endswith("/") else methods_of(path)
        return method in methods or (method == "OPTIONS" and bool(methods))

    def apply(self, settings: Settings) -> None:
        """Applies new settings. Then the caller must host the agents of ``served``."""
        self.served.apply(settings_mapping.served_registry(settings))
        self.registration.apply(settings_mapping.litellm_of_registry(settings))
        if self.library.is_loaded:
            self.served.update(self.library.content)
            self._show_tools()

    def prompt(self, ref: str) -> Mapping[str, Any] | None:
        """The newest version of a prompt; None if no registry is served.

        Raises:
            LookupError: the served registry does not have it.
        """
        if not settings_mapping.registry_prefixes(self._settings()):
            return None
        try:
            content = self.library.content
            return content.view(Kind.PROMPT, content.newest(Kind.PROMPT, ref))
        except RegistryRefusedError as error:
            raise LookupError(ref) from error

    def prompts(self) -> Sequence[Mapping[str, Any]] | None:
        """The newest versions of all prompts; None if no registry is served."""
        if not self.library.is_loaded or not settings_mapping.registry_prefixes(self._settings()):
            return None
        content = self.library.content
        return [content.view(Kind.PROMPT, entry) for entry in content.ordered(Kind.PROMPT)]

    @property
    def tools(self) -> Sequence[Tool]:
        """``invoke_architecture``, but only if there are architectures, because a listing costs every client tokens."""
        if not self.library.is_loaded or not settings_mapping.registry_prefixes(self._settings()):
            return ()
        return (self._invoke,) if self.library.content.count(Kind.ARCHITECTURE) else ()

    def _plan(self, architecture_id: str) -> ArchitecturePlan:
        content = self.library.content
        remote = remote_tools(content, settings_mapping.remote_agents(self._settings()))
        return plan_of(architecture_id, content, {**remote, **self.served.tools})

    async def _changed(self, kind: Kind) -> None:
        if kind in {Kind.AGENT, Kind.SKILL}:
            self.registration.update(self.library.content)
        if kind is not Kind.PROMPT:
            self.served.update(self.library.content)
            self._show_tools()
            await self._agents_changed()

    def _show_tools(self) -> None:
        if self.tools != self._shown:
            self._shown = self.tools
            self._tools_changed()
