"""The entry for toold in an editor's file, and the error for a file that cannot be changed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

SERVER: Final = "toold"
"""The name of the entry in every file."""

Shape = Literal["plain", "typed", "zed"]


class RefusedFileError(Exception):
    """The file cannot be changed and stays as it is; the message names the problem and the remedy."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """The command with which an editor starts ``toold mcp``."""

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def as_value(self, shape: Shape) -> dict[str, Any]:
        """The entry's value in the file: ``typed`` adds the transport, ``zed`` the server's origin."""
        first: dict[str, Any] = {"plain": {}, "typed": {"type": "stdio"}, "zed": {"source": "custom"}}[shape]
        environment = {"env": dict(self.environment)} if self.environment else {}
        return {**first, "command": self.command, "args": list(self.arguments), **environment}
