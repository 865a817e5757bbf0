"""Functions as callers define them."""

import pytest
from pydantic import TypeAdapter, ValidationError
from toold.providers import FunctionTool
from toold.tools.builtin.vendor.function_definitions import FunctionDefinitions

DEFINITIONS = TypeAdapter(FunctionDefinitions)


def test_a_name_is_enough() -> None:
    """A function without arguments has an empty object of them."""
    (definition,) = DEFINITIONS.validate_python([{"function": {"name": "look"}}])
    assert definition.tool == FunctionTool("look", "", {"type": "object", "properties": {}})


@pytest.mark.parametrize("name", ["", "a b", "$web_search", "x" * 65, "look\n"])
def test_names_are_those_that_vendors_take(name: str) -> None:
    """The vendor would reject other names, or take them for built-in tools."""
    with pytest.raises(ValidationError):
        DEFINITIONS.validate_python([{"function": {"name": name}}])


def test_a_name_stands_once() -> None:
    """Otherwise a call would be ambiguous."""
    with pytest.raises(ValidationError, match="two functions are named 'look'"):
        DEFINITIONS.validate_python([{"function": {"name": "look"}}] * 2)
