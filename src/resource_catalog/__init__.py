"""The catalogue of resources and prompts, of MCP sources and of the daemon itself.

Used by the daemon's wiring and its transports. Knows toolsets, the contexts of calls, the listings of sources, and
MCP's objects. Must not know transports, sessions, SQL or how sources connect.
"""

from .catalog_methods import CALLS, LISTS, CatalogMethods
from .own_resources import MAX_LISTED, ConversationReader, OwnResources, ResultReader, StoredItem
from .resource_followers import LEVELS, Follower, ResourceFollowers

__all__ = [
    "CALLS",
    "LEVELS",
    "LISTS",
    "MAX_LISTED",
    "CatalogMethods",
    "ConversationReader",
    "Follower",
    "OwnResources",
    "ResourceFollowers",
    "ResultReader",
    "StoredItem",
]
