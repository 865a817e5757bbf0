"""The cards of agents, separately for A2A 1.0 and 0.3, because strict readers of one version refuse the fields of the
other. Pure.
"""

from typing import Any, Final, NamedTuple

OLD_PREFIX: Final = "/v0.3"
"""Below an agent's URL: where clients of 0.3 find a card at the well-known path of both versions."""

_MODES: Final = ["text/plain", "application/json"]
_SCHEME: Final = "bearer"


class CardSkill(NamedTuple):
    """Something that an agent can do."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()


class CardFacts(NamedTuple):
    """The facts about an agent on its card."""

    name: str
    description: str
    version: str
    url: str
    """The agent's URL, without a slash at the end."""
    auth: bool
    """Whether requests need a token."""
    push: bool
    """Whether push notifications are sent."""
    skills: tuple[CardSkill, ...] = ()
    """If empty, the agent has one skill, with the agent's description."""
    extended: bool = False
    """Whether there is an extended card."""


def card_1_0(facts: CardFacts) -> dict[str, Any]:
    """The card of version 1.0."""
    bearer: dict[str, Any] = {
        "securitySchemes": {_SCHEME: {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {_SCHEME: {"list": []}}}],
    }
    return {
        "name": facts.name,
        "description": facts.description,
        "supportedInterfaces": [
            {"url": f"{facts.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": facts.url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": f"{facts.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
        "version": facts.version,
        "capabilities": {"streaming": True, "pushNotifications": facts.push, "extendedAgentCard": facts.extended},
        "defaultInputModes": _MODES,
        "defaultOutputModes": _MODES,
        "skills": _skills(facts),
        **(bearer if facts.auth else {}),
    }


def card_0_3(facts: CardFacts) -> dict[str, Any]:
    """The card of version 0.3."""
    bearer = {"securitySchemes": {_SCHEME: {"type": "http", "scheme": "bearer"}}, "security": [{_SCHEME: []}]}
    return {
        "protocolVersion": "0.3.0",
        "name": facts.name,
        "description": facts.description,
        "url": f"{facts.url}/",
        "preferredTransport": "JSONRPC",
        "version": facts.version,
        "capabilities": {"streaming": True, "pushNotifications": facts.push, "stateTransitionHistory": False},
        "defaultInputModes": _MODES,
        "defaultOutputModes": _MODES,
        "skills": _skills(facts),
        "supportsAuthenticatedExtendedCard": facts.extended,
        **(bearer if facts.auth else {}),
    }


def _skills(facts: CardFacts) -> list[dict[str, Any]]:
    skills = facts.skills or (CardSkill(facts.name, facts.name, facts.description, ("agent",)),)
    return [_skill(skill) for skill in skills]


def _skill(skill: CardSkill) -> dict[str, Any]:
    examples = {"examples": list(skill.examples)} if skill.examples else {}
    described = {"id": skill.id, "name": skill.name, "description": skill.description}
    return {**described, "tags": list(skill.tags), **examples}
