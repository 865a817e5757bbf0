"""The cards of remote agents, of A2A 1.0 and 0.3, as far as a client needs them. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from .a2a_version import A2AVersion

Binding = Literal["JSONRPC", "HTTP+JSON"]

MAX_SKILLS: Final = 200
"""The maximum number of skills of one agent."""
MAX_INTERFACES: Final = 100
_SUPPORTED: Final[tuple[tuple[A2AVersion, Binding], ...]] = (
    ("1.0", "JSONRPC"),
    ("1.0", "HTTP+JSON"),
    ("0.3", "JSONRPC"),
)
"""The interfaces that this client supports, best first. HTTP+JSON of 0.3 is missing because it differs between servers;
all of them also have JSON-RPC.
"""


class UnusableCardError(ValueError):
    """The card cannot be used; the message gives the reason, without a period."""


class RemoteInterface(NamedTuple):
    """The URL, binding and version with which an agent is called."""

    url: str
    """Without a slash at the end, if the binding is HTTP+JSON."""
    binding: Binding
    version: A2AVersion
    tenant: str
    """Sent with each request; empty if there is none."""


class RemoteSkill(NamedTuple):
    """A skill that an agent declares."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...]


class RemoteCard(NamedTuple):
    """The content of an agent's card."""

    name: str
    description: str
    interfaces: tuple[RemoteInterface, ...]
    """The interfaces that this client supports, best first; at least one."""
    streaming: bool
    skills: tuple[RemoteSkill, ...]


def read_card(card: object) -> RemoteCard:
    """Reads a card of either version.

    Raises:
        UnusableCardError: ``card`` is not a card, or the agent cannot be called.
    """
    if not isinstance(card, dict):
        raise UnusableCardError("it is not a JSON object")
    name, skills = card.get("name"), card.get("skills", [])
    if not isinstance(name, str) or not name.strip():
        raise UnusableCardError("it is not an agent card: name is missing")
    if not isinstance(skills, list) or len(skills) > MAX_SKILLS:
        raise UnusableCardError(f"skills must be a list of at most {MAX_SKILLS}")
    capabilities = card.get("capabilities")
    streaming = isinstance(capabilities, dict) and capabilities.get("streaming") is True
    read = {skill.id: skill for skill in map(_skill, skills) if skill is not None}
    return RemoteCard(name.strip(), _text(card, "description"), _interfaces(card), streaming, tuple(read.values()))


def _interfaces(card: Mapping[str, Any]) -> tuple[RemoteInterface, ...]:
    offered = list(_offered(card))
    if not offered:
        raise UnusableCardError(
            "it names no interface: supportedInterfaces (A2A 1.0), or url and protocolVersion (0.3), is missing"
        )
    spoken = [
        RemoteInterface(url.rstrip("/") if binding == "HTTP+JSON" else url, binding, version, tenant)
        for version, binding in _SUPPORTED
        for url, offered_binding, offered_version, tenant in offered
        if offered_binding == binding and _is_version(offered_version, version)
    ]
    if not spoken:
        shown = ", ".join(sorted({f"{binding} {version}"[:40] for _, binding, version, _ in offered})[:10])
        wanted = ", ".join(f"{binding} {version}" for version, binding in _SUPPORTED)
        raise UnusableCardError(f"it offers {shown}, and this client speaks {wanted}")
    return tuple(spoken)


def _offered(card: Mapping[str, Any]) -> Iterable[tuple[str, str, str, str]]:
    """The URL, binding, version and tenant of each interface, in the card's order."""
    listed = card.get("supportedInterfaces")
    if isinstance(listed, list):
        for each in listed[:MAX_INTERFACES]:
            if isinstance(each, dict) and _text(each, "url"):
                binding, version = _text(each, "protocolBinding"), _text(each, "protocolVersion")
                yield _text(each, "url"), binding.upper(), version, _text(each, "tenant")
    version = _text(card, "protocolVersion")
    if _text(card, "url") and version:
        yield _text(card, "url"), (_text(card, "preferredTransport") or "JSONRPC").upper(), version, ""
        others = card.get("additionalInterfaces")
        for each in others[:MAX_INTERFACES] if isinstance(others, list) else ():
            if isinstance(each, dict) and _text(each, "url"):
                yield _text(each, "url"), _text(each, "transport").upper(), version, ""


def _is_version(offered: str, version: A2AVersion) -> bool:
    """Whether both have the same major and minor number."""
    return ".".join(offered.split(".")[:2]) == version


def _skill(value: object) -> RemoteSkill | None:
    if not isinstance(value, dict) or not _text(value, "id"):
        return None
    skill_id = _text(value, "id")
    return RemoteSkill(
        skill_id,
        _text(value, "name") or skill_id,
        _text(value, "description"),
        _texts(value.get("tags")),
        _texts(value.get("examples")),
    )


def _text(table: Mapping[str, Any], field: str) -> str:
    value = table.get(field)
    return value.strip() if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
