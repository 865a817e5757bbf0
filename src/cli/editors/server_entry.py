"""What an editor is told: which program to start, and with which variables. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

SERVER: Final = "toold"
"""The name of our entry in every file."""

Shape = Literal["plain", "typed", "zed"]


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """How an editor starts ``toold mcp``."""

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def as_value(self, shape: Shape) -> dict[str, Any]:
        """The entry as a file has it: ``typed`` names the transport, ``zed`` where the server comes from."""
        first: dict[str, Any] = {"plain": {}, "typed": {"type": "stdio"}, "zed": {"source": "custom"}}[shape]
        environment = {"env": dict(self.environment)} if self.environment else {}
        return {**first, "command": self.command, "args": list(self.arguments), **environment}
