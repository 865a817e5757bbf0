"""The paths of A2A on the HTTP port. Pure."""

from typing import Final, Literal, NamedTuple

from .a2a_version import A2AVersion
from .agent_card import OLD_PREFIX

AGENTS_PATH: Final = "/agents"
_WELL_KNOWN: Final = "/.well-known/"
CARD_PATH: Final = f"{_WELL_KNOWN}agent-card.json"
OLD_CARD_PATH: Final = f"{_WELL_KNOWN}agent.json"

RouteKind = Literal["catalogue", "rpc", "card"]


class A2ARoute(NamedTuple):
    """What a path addresses."""

    kind: RouteKind
    method: str
    """The HTTP method that it takes."""
    agent: str | None = None
    """None: the default agent."""
    version: A2AVersion | None = None
    """Of a card, or of all requests to this path; None: as the request says."""


def is_a2a_path(path: str) -> bool:
    """Whether a path of the HTTP port belongs to A2A; ``/`` does for POST only."""
    return path == AGENTS_PATH or path.startswith(f"{AGENTS_PATH}/") or path in {CARD_PATH, OLD_CARD_PATH}


def route_of(path: str) -> A2ARoute | None:
    """What a path addresses; None if nothing."""
    if path.rstrip("/") == AGENTS_PATH:
        return A2ARoute("catalogue", "GET")
    if path in {"/", CARD_PATH, OLD_CARD_PATH}:
        return _of_agent(path, None)
    agent, slash, rest = path.removeprefix(f"{AGENTS_PATH}/").partition("/")
    return _of_agent(slash + rest, agent) if agent else None


def _of_agent(rest: str, agent: str | None) -> A2ARoute | None:
    old = rest.startswith(f"{OLD_PREFIX}/") or rest == OLD_PREFIX
    if old:
        rest = rest.removeprefix(OLD_PREFIX)
    if rest in {"", "/"}:
        return A2ARoute("rpc", "POST", agent, "0.3" if old else None)
    if rest in {CARD_PATH, OLD_CARD_PATH}:
        return A2ARoute("card", "GET", agent, "0.3" if old or rest == OLD_CARD_PATH else "1.0")
    return None
