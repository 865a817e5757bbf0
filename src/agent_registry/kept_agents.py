"""The last good record of each agent of a registry, stored on disk for a start without the registry. Blocks."""

from pathlib import Path
from typing import Any, Final

import msgspec

from ..sources import KeptFiles
from ..tools import AgentDefinitionError
from .registered_agents import RegisteredAgent, definition_of
from .registry_client import MAX_RECORD_BYTES
from .registry_settings import MAX_REGISTRY_AGENTS, RegistrySettings

KEPT_AGENTS_DIRECTORY: Final = "registry"
"""The name of the directory in the state directory."""
MAX_KEPT_AGENTS: Final = 2 * MAX_REGISTRY_AGENTS
"""The maximum number of stored agents. The oldest beyond it are deleted: agents of an earlier registry, or no longer
hosted ones.
"""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    """Distinguishes an agent from one with the same id at another registry, such as a staging registry."""
    id: str
    record: msgspec.Raw


class KeptAgents:
    """One file per agent in ``directory``."""

    def __init__(self, directory: Path) -> None:
        # A file has the record, its runtime configuration from a second answer, and some fields.
        self._files = KeptFiles(directory, max_files=MAX_KEPT_AGENTS, max_bytes=3 * MAX_RECORD_BYTES)

    def keep(self, agent: RegisteredAgent, settings: RegistrySettings) -> None:
        """Store the good definition of an agent. If there is none, delete the stored one.

        Raises:
            OSError: the disk is full, or the directory cannot be written.
        """
        key = _key(settings, agent.reference.id)
        if agent.good is None:
            self._files.delete(key)
        else:
            file = _File(settings.base, agent.reference.id, msgspec.Raw(agent.good.content))
            self._files.keep(key, msgspec.json.encode(file))

    def load(self, settings: RegistrySettings) -> tuple[RegisteredAgent, ...]:
        """The agents of the settings, each with its stored definition, if there is one."""
        return tuple(self._loaded(RegisteredAgent(reference), settings) for reference in settings.agents)

    def _loaded(self, agent: RegisteredAgent, settings: RegistrySettings) -> RegisteredAgent:
        kept = self._files.load(_key(settings, agent.reference.id))
        if kept is None:
            return agent
        try:
            file = msgspec.json.decode(kept.content, type=_File)
            record = msgspec.json.decode(file.record, type=dict[str, Any])
            good = definition_of(record, agent.reference, settings)
        except (msgspec.DecodeError, RecursionError, AgentDefinitionError):
            return agent
        return RegisteredAgent(agent.reference, good=good, kept_since=kept.last_good)


def _key(settings: RegistrySettings, agent_id: str) -> bytes:
    return msgspec.json.encode([settings.base, agent_id])
