"""The ``@tool`` decorator and the properties of ``Tool``."""

from typing import Annotated, Any

import pytest
from pydantic import Field
from toold.tools import Arguments, Tool, ToolContext, tool


class Colour(Arguments):
    """Not part of the schema."""

    red: int
    name: str = ""


def make(**options: Any) -> Tool:
    @tool("paint", **{"read_only": True, "open_world": False} | options)
    async def paint(arguments: Colour, context: ToolContext) -> str:
        """Paint it.

        In one colour.
        """
        return arguments.name

    return paint


def test_the_listing_is_derived_from_the_docstring_and_the_model() -> None:
    """The listing contains the whole docstring and a schema without pydantic's titles."""
    info = make().info
    assert info.name == "paint"
    assert info.description == "Paint it.\n\nIn one colour."
    assert info.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"red": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["red"],
    }


def test_the_listing_is_short_about_arguments_that_need_not_be_sent() -> None:
    """That an argument may be null is listed only if null is not its default; other defaults and limits stay."""

    class Shape(Arguments):
        corners: int | None
        sides: Annotated[int, Field(ge=3)] | None = None
        tags: list[str] | None = Field(default=[])
        kind: bool | str | None = Field(default=None, description="Which.")
        size: int | None = 1

    @tool("draw", read_only=True, open_world=False)
    async def draw(_arguments: Shape, _context: ToolContext) -> str:
        """Draw it."""
        return ""

    number, texts, none = {"type": "integer"}, {"items": {"type": "string"}, "type": "array"}, {"type": "null"}
    assert draw.info.input_schema["properties"] == {
        "corners": {"anyOf": [number, none]},
        "sides": {"type": "integer", "minimum": 3},
        "tags": {"anyOf": [texts, none]},
        "kind": {"anyOf": [{"type": "boolean"}, {"type": "string"}], "description": "Which."},
        "size": {"anyOf": [number, none], "default": 1},
    }


@pytest.mark.parametrize(
    ("options", "local", "repeatable"),
    [
        ({}, True, True),
        ({"open_world": True}, False, True),
        ({"read_only": False, "destructive": True}, False, False),
        ({"read_only": False, "idempotent": True}, False, True),
    ],
)
def test_annotations_determine_local_and_repeatable(options: dict[str, bool], local: bool, repeatable: bool) -> None:
    """A read-only, closed-world tool is local; a read-only or idempotent tool is repeatable."""
    result = make(**options)
    assert (result.local, result.repeatable) == (local, repeatable)
    assert result.annotations.destructive_hint is options.get("destructive", False)


@pytest.mark.parametrize("name", ["", "a b", "ümlaut", "x" * 65, "a.b"])
def test_an_invalid_tool_name_is_rejected(name: str) -> None:
    """A tool name has 1–64 characters: letters, digits, _ and -."""
    with pytest.raises(ValueError, match="a tool name is"):
        tool(name, read_only=True, open_world=False)


@pytest.mark.parametrize("timeout_s", [0, -1, 1801, float("nan")])
def test_an_invalid_timeout_is_rejected(timeout_s: float) -> None:
    """A tool's timeout is above 0 and at most 1,800 seconds."""
    with pytest.raises(ValueError, match="timeout_s"):
        make(timeout_s=timeout_s)


def test_a_function_that_is_not_async_is_rejected() -> None:
    """A synchronous function would block the event loop."""

    def plain(arguments: Colour, context: ToolContext) -> str:
        """Block."""
        return ""

    with pytest.raises(TypeError, match="must be an async function"):
        tool("plain", read_only=True, open_world=False)(plain)  # type: ignore[arg-type]


def test_a_function_without_docstring_is_rejected() -> None:
    """The docstring is the description of the tool, so it is required."""

    async def silent(arguments: Colour, context: ToolContext) -> str:
        return ""

    with pytest.raises(TypeError, match="'silent' needs a docstring"):
        tool("silent", read_only=True, open_world=False)(silent)


async def no_model(arguments: dict[str, Any], context: ToolContext) -> str:
    """Take anything."""
    return ""


async def not_annotated(arguments, context) -> str:  # type: ignore[no-untyped-def]
    """Take anything."""
    return ""


async def one_parameter(arguments: Colour) -> str:
    """Take no context."""
    return ""


async def unknown_name(arguments: "Nowhere", context: ToolContext) -> str:  # type: ignore[name-defined]  # noqa: F821 - the case under test
    """Use a type that does not exist at run time."""
    return ""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_model, "pydantic model"),
        (not_annotated, "pydantic model"),
        (one_parameter, "two parameters"),
        (unknown_name, "outside TYPE_CHECKING"),
    ],
)
def test_an_unsupported_signature_is_rejected(function: Any, says: str) -> None:
    """A tool needs two parameters, and the first is annotated with a pydantic model that exists at run time."""
    with pytest.raises(TypeError, match=says):
        tool("odd", read_only=True, open_world=False)(function)
