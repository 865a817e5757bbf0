"""The arguments of one operation: parameters of four places and fields of a body, side by side in one object. Pure."""

from typing import Any

from ..source_tool_names import argument_name
from .openapi_schemas import Schema


class ArgumentTable:
    """Names arguments, each once, and makes the schema of them all (decision 31)."""

    def __init__(self) -> None:
        self._properties: dict[str, Schema] = {}
        self._required: list[str] = []

    def add(self, where: str, name: str, schema: Schema, *, required: bool) -> str:
        """Add the argument for a parameter or a field; returns what it is called. Who comes first has its own name."""
        argument = argument_name(name, where, self._properties)
        self._properties[argument] = schema
        if required:
            self._required.append(argument)
        return argument

    def schema(self, definitions: dict[str, Schema]) -> dict[str, Any]:
        """The schema of an object of all arguments; others are refused."""
        whole: dict[str, Any] = {
            "type": "object",
            "properties": self._properties,
            "required": self._required,
            "additionalProperties": False,
        }
        if not self._required:
            del whole["required"]
        return whole | ({"$defs": definitions} if definitions else {})
