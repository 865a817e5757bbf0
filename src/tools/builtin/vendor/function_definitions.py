"""Functions that a model may call, in the vendors' (OpenAI's) format. Pure."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from ....protocol.error_codes import InvalidArgumentsError
from ....providers import FunctionTool, ToolChoice
from ...tool import Arguments

_OBJECT: Final = WithJsonSchema({"type": "object"})
"""The schema in the tool list. It says only ``object``, because models know the format."""


class Function(Arguments):
    """The definition of a function."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="1-64 of A-Z, a-z, 0-9, _ and -.")
    description: str = Field(default="", description="What the function does and when to use it.")
    parameters: dict[str, Any] = Field(
        default={"type": "object", "properties": {}}, description="JSON Schema of its arguments."
    )
    strict: bool | None = None


class FunctionDefinition(Arguments):
    """An item of ``tools``."""

    type: Literal["function"] = "function"
    function: Function

    @property
    def tool(self) -> FunctionTool:
        function = self.function
        return FunctionTool(function.name, function.description, function.parameters, function.strict)


class BuiltinSearch(Arguments):
    """An item of ``tools`` that requests the vendor's web search, in the format of the vendor's API. It has the same
    effect as the argument ``web_search``.
    """

    type: Literal["builtin_function", "web_search"]
    function: Annotated[dict[Literal["name"], Literal["$web_search"]] | None, _OBJECT] = None
    web_search: Annotated[dict[str, Any] | None, _OBJECT] = None


class FunctionName(Arguments):
    """The function of a ``FunctionChoice``."""

    name: str


class FunctionChoice(Arguments):
    """A ``tool_choice``: the model must call this function."""

    type: Literal["function"] = "function"
    function: FunctionName


def _kind(item: Any) -> str:
    """Returns the tag of an item of ``tools``: the vendor's tool or the caller's function. Validation then reports only
    errors of the matching model.
    """
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return "vendors" if kind in {"builtin_function", "web_search"} else "callers"


Definition = Annotated[
    Annotated[FunctionDefinition, Tag("callers")] | Annotated[BuiltinSearch, Tag("vendors")], Discriminator(_kind)
]


def _require_unique_names(definitions: list[Definition]) -> list[Definition]:
    names = [item.function.name for item in definitions if isinstance(item, FunctionDefinition)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two functions are named {name!r}")
    return definitions


FunctionDefinitions = Annotated[list[Definition], Field(max_length=128), AfterValidator(_require_unique_names)]
"""The argument ``tools``. 128 is Moonshot's limit."""

ToolChoiceArgument = Literal["auto", "none", "required"] | FunctionChoice | None
"""The argument ``tool_choice``, as in the vendors' APIs."""


def searches(definitions: Sequence[Definition]) -> bool:
    """Whether the vendor's web search is among the tools."""
    return any(isinstance(item, BuiltinSearch) for item in definitions)


def offered(
    definitions: Sequence[Definition], choice: ToolChoiceArgument
) -> tuple[tuple[FunctionTool, ...], ToolChoice | None]:
    """Returns the functions to offer to the model, and whether it must call one.

    If the model must call a certain function, only that function is offered, because not every model accepts a function
    name in ``tool_choice``.

    Raises:
        InvalidArgumentsError: the function that must be called is not among the tools.
    """
    functions = tuple(item.tool for item in definitions if isinstance(item, FunctionDefinition))
    if isinstance(choice, FunctionChoice):
        name = choice.function.name
        functions = tuple(function for function in functions if function.name == name)
        if not functions:
            raise _not_offered(f"there is no function {name[:64]!r} in tools")
        return functions, "required"
    if choice == "required" and not functions:
        raise _not_offered("'required' needs at least one function in tools")
    return functions, "required" if choice == "required" else "none" if choice == "none" and functions else None


def _not_offered(problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"tool_choice: {problem}.", details={"fields": {"tool_choice": problem}})
