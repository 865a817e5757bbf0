"""The HTTP API of the served registry, with the routes of cs-agent-registry-api.

Used by the daemon's wiring. Knows tokens, paths and entity tags; ``served_registry`` defines and validates the entries.
Must not know the store, or how agents run.
"""

from .registry_operations import RegistryOperations
from .registry_request import REGISTRY_PREFIX, TRANSPORT, methods_of
from .registry_server import RegistryServer

__all__ = ["REGISTRY_PREFIX", "TRANSPORT", "RegistryOperations", "RegistryServer", "methods_of"]
