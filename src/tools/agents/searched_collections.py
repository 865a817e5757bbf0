"""The collections of documents that a role searches, with the tools of ``knowledge`` in the session's toolset. Pure."""

from collections.abc import Mapping
from typing import Final

from ..tool_definition import Tool
from .agent_definition import Role

KNOWLEDGE_SOURCE: Final = "knowledge"
"""The ``Tool.source`` of the tools of collections."""
COLLECTION_PREFIX: Final = "knowledge_"
"""The prefix of the tools that search: ``knowledge_NAME`` searches the collection NAME."""
RESERVED_COLLECTIONS: Final = frozenset({"add", "embed", "list", "remove"})
"""The suffixes of the other tools whose names begin with ``knowledge_``. Collections cannot have these names."""


def optional_searches(role: Role, tools: Mapping[str, Tool]) -> tuple[list[Tool], list[str]]:
    """The tools that search the optional collections of a role, and a warning for each collection without a tool."""
    searches, warnings = [], []
    for name in role.optional_knowledge:
        tool = tools.get(f"{COLLECTION_PREFIX}{name}")
        if tool is not None and tool.source == KNOWLEDGE_SOURCE and name not in RESERVED_COLLECTIONS:
            searches.append(tool)
        else:
            why = f"this session's toolset has no collection of this name ([knowledge.{name}] in toold.toml)"
            warnings.append(f"role {role.name} cannot search the documents {name!r}: {why}")
    return searches, warnings
