"""The registry of agents that the daemon serves: its entries, their checks, and which of its agents are hosted here.

Used by the daemon's wiring and its transport for ``/registry``. Knows the store, and the client of registries, whose
code checks and hosts the definitions here too. Must not know HTTP, tokens, or how agents run.
"""

from .agent_discovery import discover
from .architecture_plans import plan_of, remote_tools
from .entry_pages import list_answer
from .litellm_registration import LiteLlmRegistration
from .registered_card import mcp_servers_of, runtime_record
from .registry_content import MAX_CONTENT_BYTES, EntryVersion, RegistryContent
from .registry_kinds import NAMES, Kind, KindNames
from .registry_library import RegistryLibrary, etag_of
from .registry_problem import RegistryRefusedError, field_problem
from .served_agents import ServedAgents

__all__ = [
    "MAX_CONTENT_BYTES",
    "NAMES",
    "EntryVersion",
    "Kind",
    "KindNames",
    "LiteLlmRegistration",
    "RegistryContent",
    "RegistryLibrary",
    "RegistryRefusedError",
    "ServedAgents",
    "discover",
    "etag_of",
    "field_problem",
    "list_answer",
    "mcp_servers_of",
    "plan_of",
    "remote_tools",
    "runtime_record",
]
