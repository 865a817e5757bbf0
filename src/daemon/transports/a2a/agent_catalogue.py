"""The agents in the toolsets of a caller of A2A, and their cards. The cards of public agents need no token."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ....protocol.a2a.a2a_error import UNSUPPORTED_OPERATION, A2AError
from ....protocol.a2a.a2a_route import AGENTS_PATH, JWKS_PATH
from ....protocol.a2a.a2a_version import A2AVersion
from ....protocol.a2a.agent_card import CardFacts, CardSkill, card_0_3, card_1_0
from ....protocol.authorization import Authorization
from ....tools import AGENT_SOURCE, Agent, AgentSkill, Tool, ToolCatalog
from ....version import __version__
from ..http_client import find, toolsets_of
from .card_signer import CardSigner


class CatalogueSettings(NamedTuple):
    """The settings of A2A."""

    url: str | None
    """The URL at which clients reach this port; None: the URL of the request."""
    default_agent: str | None
    """The agent of the paths without a name; None: the only agent that the caller sees."""
    auth: bool
    push: bool


class AgentCatalogue:
    """The hosted agents, as callers see them."""

    def __init__(
        self,
        catalog: Callable[[], ToolCatalog],
        agents: Callable[[], Mapping[str, Agent]],
        settings: Callable[[], CatalogueSettings],
        signer: CardSigner | None,
    ) -> None:
        """``agents`` returns the definitions of the hosted agents. ``signer`` signs the cards of version 1.0 if the
        settings have a URL; None: cards are not signed.
        """
        self._catalog = catalog
        self._agents = agents
        self._settings = settings
        self._signer = signer

    @property
    def jwks(self) -> bytes | None:
        """The keys that verify the cards, as a JWK set; None if cards are not signed."""
        return None if self._signer is None else self._signer.jwks

    def find(self, name: str | None, access: Authorization) -> tuple[str, str] | None:
        """The agent with this name, or the default agent, and the caller's toolset that contains it; None if the caller
        has no such agent.
        """
        if name is None:
            visible = dict(self._visible(access))
            name = self._settings().default_agent or (next(iter(visible)) if len(visible) == 1 else None)
        if name is None:
            return None
        catalog = self._catalog()
        for toolset in toolsets_of(catalog, access):
            tool = find(catalog, toolset, name)
            if tool is not None and self._is_hosted(tool) and tool.name == name:
                return name, toolset
        return None

    def answers_by_message(self, name: str) -> bool:
        """Whether a hosted agent answers waiting clients with messages."""
        agent = self._agents().get(name)
        return agent is not None and agent.answer_as == "message"

    def card(self, name: str, version: A2AVersion, origin: str) -> bytes:
        """The card of a hosted agent. ``origin``: the scheme and host of the request."""
        return msgspec.json.encode(self._card(self._agents()[name], version, origin))

    def extended_card(self, name: str, version: A2AVersion, origin: str) -> Mapping[str, Any]:
        """The card with the skills that only callers with a token see.

        Raises:
            A2AError: the agent has no extended card.
        """
        agent = self._agents().get(name)
        if agent is None or not _has_extended(agent):
            why = "This agent has no extended card (see capabilities of its card): its card has all its skills."
            raise A2AError(UNSUPPORTED_OPERATION, why)
        return self._card(agent, version, origin, extended=True)

    def cards(self, access: Authorization, origin: str) -> bytes:
        """The cards of all agents that the caller sees."""
        return self._encoded_cards([name for name, _ in self._visible(access)], origin)

    def public_cards(self, origin: str) -> bytes | None:
        """The cards that anyone may read; None if there are none."""
        names = [agent.name for agent in self._agents().values() if agent.public]
        return self._encoded_cards(names, origin) if names else None

    def public_card(self, name: str | None, version: A2AVersion, origin: str) -> bytes | None:
        """The card of an agent, or of the default agent, if anyone may read it."""
        agents = self._agents()
        if name is None:
            name = self._settings().default_agent or (next(iter(agents)) if len(agents) == 1 else "")
        agent = agents.get(name)
        return msgspec.json.encode(self._card(agent, version, origin)) if agent is not None and agent.public else None

    def _encoded_cards(self, names: list[str], origin: str) -> bytes:
        agents = self._agents()
        cards = [self._card(agents[name], "1.0", origin) for name in sorted(names)]
        return msgspec.json.encode({"agents": cards})

    def _card(self, agent: Agent, version: A2AVersion, origin: str, *, extended: bool = False) -> Mapping[str, Any]:
        settings = self._settings()
        base = (settings.url or origin).rstrip("/")
        facts = CardFacts(
            agent.name,
            agent.description,
            __version__,
            f"{base}{AGENTS_PATH}/{agent.name}",
            auth=settings.auth,
            push=settings.push,
            skills=tuple(_card_skill(skill) for skill in agent.skills if extended or not skill.extended),
            extended=_has_extended(agent),
        )
        if version == "0.3":
            return card_0_3(facts)
        card = card_1_0(facts)
        if self._signer is None or settings.url is None:  # a URL from a Host header is never signed
            return card
        return self._signer.signed(card, f"{base}{JWKS_PATH}")

    def _is_hosted(self, tool: Tool) -> bool:
        """Whether a tool is an agent. ``agent_replay`` is not, although its roles nest like an agent's roles."""
        return tool.agent and tool.source == AGENT_SOURCE and tool.name in self._agents()

    def _visible(self, access: Authorization) -> Iterator[tuple[str, Tool]]:
        catalog = self._catalog()
        seen = set[str]()
        for toolset in toolsets_of(catalog, access):
            for name, tool in catalog.view(toolset).tools.items():
                if self._is_hosted(tool) and name not in seen:
                    seen.add(name)
                    yield name, tool


def _has_extended(agent: Agent) -> bool:
    return any(skill.extended for skill in agent.skills)


def _card_skill(skill: AgentSkill) -> CardSkill:
    return CardSkill(skill.id, skill.name or skill.id, skill.description, skill.tags, skill.examples)


def etag_of(card: bytes) -> str:
    """The entity tag of a card."""
    return f'"{hashlib.sha256(card).hexdigest()[:32]}"'
