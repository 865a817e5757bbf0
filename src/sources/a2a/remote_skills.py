"""The tools of a remote agent: one for the agent, or one per skill. Pure."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from ...protocol.a2a.remote_card import RemoteCard, RemoteSkill
from ...protocol.terminal_text import terminal_safe
from ..source import SourceNote
from ..source_settings import A2ASettings
from ..upstream_definition import UpstreamDefinition, UpstreamListing
from .card_fetch import TrustedCard

MAX_DESCRIPTION_CHARS: Final = 8000
"""The maximum length of a tool's description. Every model that lists the tool reads all of it."""
_MAX_SKILL_CHARS: Final = 500
"""The maximum length of the text about one skill in the description of its agent."""
_MAX_EXAMPLES: Final = 3


def listing_of(source: str, trusted: TrustedCard, settings: A2ASettings) -> UpstreamListing:
    """The definitions of an agent's tools, for the catalog and the pins."""
    card = trusted.card
    skills = [skill for skill in card.skills if _selected(skill.id, settings)]
    notes = [
        SourceNote("omitted", setting, f"no skill matches {glob!r}")
        for setting, globs in (("include", settings.include), ("exclude", settings.exclude))
        for glob in globs
        if not any(fnmatchcase(skill.id, glob) for skill in card.skills)
    ]
    origin = trusted.interface.url + (f" signed by {trusted.key}" if trusted.key else "")
    if settings.tools == "agent":
        return UpstreamListing([UpstreamDefinition(source, _of_agent(card, skills), origin=origin)], notes)
    if not skills:
        notes.append(
            SourceNote("omitted", source, "the card has no skills; with tools = 'agent', the agent is one tool")
        )
    return UpstreamListing(
        [UpstreamDefinition(skill.id, _of_skill(card, skill), origin=origin) for skill in skills], notes
    )


def _selected(skill_id: str, settings: A2ASettings) -> bool:
    included = not settings.include or any(fnmatchcase(skill_id, glob) for glob in settings.include)
    return included and not any(fnmatchcase(skill_id, glob) for glob in settings.exclude)


def _of_agent(card: RemoteCard, skills: Sequence[RemoteSkill]) -> str:
    lines = [card.description or f"The agent {card.name}."]
    if skills:
        lines.append("Skills:")
        lines += [f"- {skill.name}: {skill.description}"[:_MAX_SKILL_CHARS] for skill in skills]
    return _shortened("\n".join(lines))


def _of_skill(card: RemoteCard, skill: RemoteSkill) -> str:
    lines = [skill.description or f"The skill {skill.name}.", f"A skill of the agent {card.name}."]
    lines += [f"Example: {example}"[:_MAX_SKILL_CHARS] for example in skill.examples[:_MAX_EXAMPLES]]
    return _shortened("\n".join(lines))


def _shortened(text: str) -> str:
    safe = terminal_safe(text[: MAX_DESCRIPTION_CHARS + 1], keep="\n")
    return safe if len(safe) <= MAX_DESCRIPTION_CHARS else f"{safe[: MAX_DESCRIPTION_CHARS - 1]}…"
