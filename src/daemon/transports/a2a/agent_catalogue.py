"""Which agents a caller of A2A sees: those of its toolsets. Their cards."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ....protocol.a2a.a2a_route import AGENTS_PATH, JWKS_PATH
from ....protocol.a2a.a2a_version import A2AVersion
from ....protocol.a2a.agent_card import CardFacts, card_0_3, card_1_0
from ....protocol.authorization import Authorization
from ....tools import AGENT_SOURCE, Tool, ToolCatalog
from ....version import __version__
from ..http_client import find, toolsets_of
from .card_signer import CardSigner


class CatalogueSettings(NamedTuple):
    """The settings of A2A."""

    url: str | None
    """The URL of this port, as clients reach it; None: as the request names it."""
    default_agent: str | None
    """The agent of the paths without a name; None: the only one that the caller sees."""
    auth: bool
    push: bool


class AgentCatalogue:
    """The hosted agents, as callers see them."""

    def __init__(
        self, catalog: Callable[[], ToolCatalog], settings: Callable[[], CatalogueSettings], signer: CardSigner | None
    ) -> None:
        """``signer`` signs the cards of version 1.0 if the settings have a URL; None: they are not signed."""
        self._catalog = catalog
        self._settings = settings
        self._signer = signer

    @property
    def jwks(self) -> bytes | None:
        """The keys that verify the cards, as a JWK set; None if cards are not signed."""
        return None if self._signer is None else self._signer.jwks

    def find(self, name: str | None, access: Authorization) -> tuple[str, str] | None:
        """The agent with this name, or the default agent, and the caller's toolset that has it; None if there is none
        for this caller.
        """
        if name is None:
            visible = dict(self._visible(access))
            name = self._settings().default_agent or (next(iter(visible)) if len(visible) == 1 else None)
        if name is None:
            return None
        catalog = self._catalog()
        for toolset in toolsets_of(catalog, access):
            tool = find(catalog, toolset, name)
            if tool is not None and _is_hosted_agent(tool) and tool.name == name:
                return name, toolset
        return None

    def card(self, name: str, toolset: str, version: A2AVersion, origin: str) -> bytes:
        """The card of an agent. ``origin``: the scheme and host of the request."""
        tool = self._catalog().find_tool(toolset, name)
        return msgspec.json.encode(self._card(tool, version, origin))

    def cards(self, access: Authorization, origin: str) -> bytes:
        """The cards of all agents that the caller sees."""
        cards = [self._card(tool, "1.0", origin) for _, tool in sorted(self._visible(access))]
        return msgspec.json.encode({"agents": cards})

    def _card(self, tool: Tool, version: A2AVersion, origin: str) -> Mapping[str, Any]:
        settings = self._settings()
        base = (settings.url or origin).rstrip("/")
        url = f"{base}{AGENTS_PATH}/{tool.name}"
        facts = CardFacts(tool.name, tool.description, __version__, url, auth=settings.auth, push=settings.push)
        if version == "0.3":
            return card_0_3(facts)
        card = card_1_0(facts)
        if self._signer is None or settings.url is None:  # nothing is signed that a caller's Host header names
            return card
        return self._signer.signed(card, f"{base}{JWKS_PATH}")

    def _visible(self, access: Authorization) -> Iterator[tuple[str, Tool]]:
        catalog = self._catalog()
        seen = set[str]()
        for toolset in toolsets_of(catalog, access):
            for name, tool in catalog.view(toolset).tools.items():
                if _is_hosted_agent(tool) and name not in seen:
                    seen.add(name)
                    yield name, tool


def _is_hosted_agent(tool: Tool) -> bool:
    """Not every tool whose roles nest is an agent: ``agent_replay`` repeats runs of others."""
    return tool.agent and tool.source == AGENT_SOURCE


def etag_of(card: bytes) -> str:
    """The entity tag of a card."""
    return f'"{hashlib.sha256(card).hexdigest()[:32]}"'
