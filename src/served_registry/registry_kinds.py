"""The kinds of entries of the served registry, and the names that they have in paths and answers. Pure."""

from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import BaseModel

from .registry_entries import AgentEntry, ArchitectureEntry, PromptEntry, RagEntry, RegisteredTool, SkillEntry

MAX_PROMPT_VERSIONS: Final = 50
"""The versions that are kept of one prompt; older ones are deleted."""


class Kind(StrEnum):
    """A kind of entry; the value is the first step of its paths."""

    SKILL = "skills"
    TOOL = "tools"
    RAG = "rag"
    PROMPT = "prompts"
    AGENT = "agents"
    ARCHITECTURE = "architectures"


class KindNames(NamedTuple):
    """The names of a kind, and how it is stored."""

    model: type[BaseModel]
    word: str
    """The name in messages."""
    entries: str
    """The field of a list."""
    entry: str
    """The field of one entry."""
    id_field: str
    """The field of its id in answers to changes."""
    kept_versions: int = 1
    makes_id: bool = False
    """Whether the registry makes the id; otherwise, the body has it in the field ``id``."""


NAMES: Final = {
    Kind.SKILL: KindNames(SkillEntry, "skill", "skills", "skill", "skill_id"),
    Kind.TOOL: KindNames(RegisteredTool, "tool", "tools", "tool", "tool_id"),
    Kind.RAG: KindNames(RagEntry, "rag configuration", "configs", "rag_config", "rag_id"),
    Kind.PROMPT: KindNames(PromptEntry, "prompt", "prompts", "prompt", "prompt_id", MAX_PROMPT_VERSIONS),
    Kind.AGENT: KindNames(AgentEntry, "agent", "agents", "agent", "agent_id", makes_id=True),
    Kind.ARCHITECTURE: KindNames(
        ArchitectureEntry, "architecture", "architectures", "architecture", "architecture_id", makes_id=True
    ),
}

REFERENCES: Final = {"skill_ids": Kind.SKILL, "tool_ids": Kind.TOOL, "rag_ids": Kind.RAG}
"""The fields of an agent that name other entries."""
SHARED: Final = {"shared_tools": Kind.TOOL, "shared_rag": Kind.RAG}
"""The fields of an architecture that name other entries."""
