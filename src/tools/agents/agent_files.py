"""Agents in a directory: one TOML, YAML or JSON file per agent. The file has the agent's name."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..yaml_reader import YamlError, read_yaml
from .agent_definition import Agent
from .agent_reader import AgentDefinitionError, read_agent

SUFFIXES: Final = (".toml", ".yaml", ".yml", ".json")
MAX_FILE_BYTES: Final = 4 * 1024**2
"""The maximum size of a file: more than any definition that people write, even with 32 long prompts."""
_MAX_DEPTH: Final = 100
_MAX_ALIASED: Final = 10_000


def agent_files(directory: Path) -> list[Path]:
    """The files of a directory that define agents; none if it cannot be read."""
    try:
        return sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    except OSError:
        return []


def agents_in(directory: Path) -> dict[str, Agent]:
    """Returns the agents that the files of a directory define, by name.

    Raises:
        AgentDefinitionError: a file cannot be read or is invalid, or two files define the same agent.
    """
    agents: dict[str, Agent] = {}
    for path in agent_files(directory):
        try:
            agent = read_agent(path.stem, _table(path))
        except AgentDefinitionError as error:
            raise AgentDefinitionError(f"{path.name}: {error}") from None
        if agent.name in agents:
            raise AgentDefinitionError(f"{path.name}: another file defines the agent {agent.name}")
        agents[agent.name] = agent
    return agents


def _table(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise AgentDefinitionError(f"has more than {MAX_FILE_BYTES:,} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise AgentDefinitionError(f"cannot be read ({error.strerror})") from None
    try:
        if path.suffix == ".toml":
            table: Any = tomllib.loads(content.decode())
        elif path.suffix == ".json":
            table = json.loads(content)
        else:
            table = read_yaml(content, max_depth=_MAX_DEPTH, max_aliased=_MAX_ALIASED)
    except YamlError as error:
        raise AgentDefinitionError(f"is not valid YAML: {error}") from None
    except (ValueError, RecursionError) as error:
        raise AgentDefinitionError(f"is not valid {path.suffix[1:].upper()}: {str(error)[:200]}") from None
    if not isinstance(table, Mapping):
        raise AgentDefinitionError("must be a table with description and prompt or roles")
    return table
