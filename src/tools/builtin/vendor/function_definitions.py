"""Functions that a model may call, in the vendors' (OpenAI's) format."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ....providers import FunctionTool
from ...tool import Arguments


class Function(Arguments):
    """The definition of a function."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="1-64 of A-Z, a-z, 0-9, _ and -.")
    description: str = Field(default="", description="What it does and when to use it.")
    parameters: dict[str, Any] = Field(
        default={"type": "object", "properties": {}}, description="JSON Schema of its arguments."
    )


class FunctionDefinition(Arguments):
    """An item of ``tools``."""

    type: Literal["function"] = "function"
    function: Function

    @property
    def tool(self) -> FunctionTool:
        return FunctionTool(self.function.name, self.function.description, self.function.parameters)


def _require_unique_names(definitions: list[FunctionDefinition]) -> list[FunctionDefinition]:
    names = [definition.function.name for definition in definitions]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two functions are named {name!r}")
    return definitions


FunctionDefinitions = Annotated[list[FunctionDefinition], Field(max_length=128), AfterValidator(_require_unique_names)]
"""``tools``; 128 is Moonshot's limit."""
