"""The content to which settings refer, reloaded with them: bound values, agents' files and the certificate."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from ..tools import Agent, ToolBinder, ToolRegistry, mask_of
from .agent_host import AgentHost
from .catalog_publisher import CatalogPublisher
from .config import settings_mapping
from .config.reloadable_settings import AGENT_FILES, BOUND_VALUES, CERTIFICATE, SettingsChanges
from .config.setting_sources import SettingsError
from .observability.logging_setup import hide
from .transports.tls_certificate import TlsCertificate


class LoadedContent(NamedTuple):
    """Content that was read and is valid."""

    binder: ToolBinder
    agents: Mapping[str, Agent]
    renewed: bool
    """Whether the certificate has changed; the new one is already in use."""


class SettingsContent:
    """Reads the content again, and applies it."""

    def __init__(
        self,
        publisher: CatalogPublisher,
        agents: AgentHost,
        installed_tools: ToolRegistry,
        certificate: TlsCertificate | None,
    ) -> None:
        self._publisher = publisher
        self._agents = agents
        self._installed_tools = installed_tools
        self._certificate = certificate

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        """The context of the WebSocket port, whose certificate is renewed in place; None without TLS."""
        return None if self._certificate is None else self._certificate.context

    async def load(self, changes: SettingsChanges) -> LoadedContent:
        """Read the content to which the changed settings refer.

        Raises:
            SettingsError: some of it is invalid; nothing has changed.
        """
        binder = await asyncio.to_thread(settings_mapping.tool_binder, changes.settings, self._installed_tools)
        agents = await asyncio.to_thread(settings_mapping.hosted_agents, changes.settings)
        return LoadedContent(binder, agents, self._renew_certificate(changes))

    def apply(self, content: LoadedContent, changes: SettingsChanges) -> list[str]:
        """Apply the content; returns the names of content that has changed although its settings have not."""
        rebound = self._bind(content.binder) and "bind" not in changes.reloaded
        new_agents = self._agents.apply(content.agents) and not {"agents", "agent_dir"} & {*changes.reloaded}
        changed = ((BOUND_VALUES, rebound), (AGENT_FILES, new_agents), (CERTIFICATE, content.renewed))
        return [name for name, has_changed in changed if has_changed]

    def _bind(self, binder: ToolBinder) -> bool:
        """Apply the bound values; returns whether they have changed."""
        if binder.values == self._publisher.values:
            return False
        self._publisher.bind(binder)
        hide(mask_of(binder.values))
        self._publisher.request()
        return True

    def _renew_certificate(self, changes: SettingsChanges) -> bool:
        """Reload the certificate; returns whether it has changed. Changed file names need a restart."""
        if self._certificate is None or not {"tls_cert", "tls_key"}.isdisjoint(changes.needs_restart):
            return False
        try:
            return self._certificate.renew()
        except OSError as error:
            raise SettingsError(f"tls_cert and tls_key: must be a certificate and its key ({error})") from None
