"""Collections of documents that tools search: of folders, or added by callers (docs/knowledge.md).

The daemon's wiring uses this package. It knows the tools' context and the providers' embeddings, and has a separate
database. From `sources/`, it uses only the messages of its settings. It must not know agents, sessions or limits of
calls.
"""

from .knowledge_host import KnowledgeHost
from .knowledge_settings import (
    CollectionSettings,
    KnowledgeSettingsError,
    anchored_collections,
    read_collections,
)

__all__ = [
    "CollectionSettings",
    "KnowledgeHost",
    "KnowledgeSettingsError",
    "anchored_collections",
    "read_collections",
]
