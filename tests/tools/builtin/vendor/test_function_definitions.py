"""Function definitions of callers."""

import pytest
from pydantic import TypeAdapter, ValidationError
from toold.providers import FunctionTool
from toold.tools.builtin.vendor.function_definitions import FunctionDefinition, FunctionDefinitions

DEFINITIONS = TypeAdapter(FunctionDefinitions)


def test_name_is_the_only_required_field() -> None:
    """A function without parameters has an empty object schema."""
    (definition,) = DEFINITIONS.validate_python([{"function": {"name": "look"}}])
    assert isinstance(definition, FunctionDefinition)
    assert definition.tool == FunctionTool("look", "", {"type": "object", "properties": {}})


@pytest.mark.parametrize("name", ["", "a b", "$web_search", "x" * 65, "look\n"])
def test_invalid_function_names_are_refused(name: str) -> None:
    """The vendor would reject other names, or treat them as built-in tools."""
    with pytest.raises(ValidationError):
        DEFINITIONS.validate_python([{"function": {"name": name}}])


def test_duplicate_function_names_are_refused() -> None:
    """Duplicate names would make a call ambiguous."""
    with pytest.raises(ValidationError, match="two functions are named 'look'"):
        DEFINITIONS.validate_python([{"function": {"name": "look"}}] * 2)
