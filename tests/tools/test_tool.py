"""``@tool``, and what a ``Tool`` says of itself."""

from typing import Any

import pytest
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


def test_the_docstring_and_the_model_make_the_listing() -> None:
    """A tool is listed with its whole docstring and a schema without pydantic's titles."""
    info = make().info
    assert info.name == "paint"
    assert info.description == "Paint it.\n\nIn one colour."
    assert info.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"red": {"type": "integer"}, "name": {"type": "string", "default": ""}},
        "required": ["red"],
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
def test_annotations_decide_durability_and_retry(options: dict[str, bool], local: bool, repeatable: bool) -> None:
    """Read-only and closed-world is local; read-only or idempotent may run twice."""
    made = make(**options)
    assert (made.local, made.repeatable) == (local, repeatable)
    assert made.annotations.destructive_hint is options.get("destructive", False)


@pytest.mark.parametrize("name", ["", "a b", "ümlaut", "x" * 65, "a.b"])
def test_a_name_that_vendors_would_refuse_is_refused(name: str) -> None:
    """A tool's name is 1–64 of letters, digits, _ and -."""
    with pytest.raises(ValueError, match="a tool name is"):
        tool(name, read_only=True, open_world=False)


@pytest.mark.parametrize("timeout_s", [0, -1, 1801, float("nan")])
def test_a_time_out_that_no_call_may_have_is_refused(timeout_s: float) -> None:
    """A tool's own time-out is above 0 and at most 1,800 seconds."""
    with pytest.raises(ValueError, match="timeout_s"):
        make(timeout_s=timeout_s)


def test_a_function_that_is_not_async_is_refused() -> None:
    """A tool is an async function: a plain one would block the loop."""

    def plain(arguments: Colour, context: ToolContext) -> str:
        """Block."""
        return ""

    with pytest.raises(TypeError, match="must be an async function"):
        tool("plain", read_only=True, open_world=False)(plain)  # type: ignore[arg-type]


def test_a_function_without_docstring_is_refused() -> None:
    """A tool describes itself, or nobody could choose it."""

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
    """Name a type that is not there at run time."""
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
def test_a_signature_that_cannot_be_bound_is_refused(function: Any, says: str) -> None:
    """The first of two parameters is annotated with a pydantic model, known at run time."""
    with pytest.raises(TypeError, match=says):
        tool("odd", read_only=True, open_world=False)(function)
