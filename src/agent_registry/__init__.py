"""Agents of a registry server: polled, validated, and stored on disk in case the registry fails.

The daemon's wiring, the doctor and `toold agents list` use this package. It decides which agents are hosted. It must
not know runs of tools, sessions or limits on calls.
"""

from .kept_agents import KEPT_AGENTS_DIRECTORY, KeptAgents
from .registered_agents import (
    RegisteredAgent,
    RegisteredAgentState,
    after_fetch,
    completed_record,
    plan_agents,
    state_of,
    tool_name_of,
)
from .registry_client import MAX_RECORD_BYTES, AbsentAgent, FailedFetch, FetchedAgent, RegistryClient
from .registry_settings import (
    MAX_ID_CHARS,
    MAX_REGISTRY_AGENTS,
    AgentReference,
    LiteLlmRegistrySettings,
    RegistrySettings,
    RegistrySettingsError,
    anchored_registry,
    read_registry,
)
from .registry_watch import RegistryWatch

__all__ = [
    "KEPT_AGENTS_DIRECTORY",
    "MAX_ID_CHARS",
    "MAX_RECORD_BYTES",
    "MAX_REGISTRY_AGENTS",
    "AbsentAgent",
    "AgentReference",
    "FailedFetch",
    "FetchedAgent",
    "KeptAgents",
    "LiteLlmRegistrySettings",
    "RegisteredAgent",
    "RegisteredAgentState",
    "RegistryClient",
    "RegistrySettings",
    "RegistrySettingsError",
    "RegistryWatch",
    "after_fetch",
    "anchored_registry",
    "completed_record",
    "plan_agents",
    "read_registry",
    "state_of",
    "tool_name_of",
]
