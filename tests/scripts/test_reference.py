"""The tables of the pages match the tools."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts.reference import PAGE, built_in_catalog, takes, written
from toold.tools import DEFAULT_TOOLSET, Arguments, Tool, ToolCatalog, ToolContext, ToolRegistry, shipped_toolsets, tool

ROOT = Path(__file__).parents[2]


def make(name: str, description: str = "Do it. Then rest.\n\nNever twice.") -> Tool:
    async def do(arguments: Arguments, context: ToolContext) -> None: ...

    do.__doc__ = description
    return tool(name, read_only=True, open_world=False)(do)


def offer(*tools: Tool) -> ToolCatalog:
    return ToolCatalog(ToolRegistry(tools), shipped_toolsets(), DEFAULT_TOOLSET)


def test_page_is_up_to_date() -> None:
    """The page in the repository matches the output of ``make docs``."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert written(text, built_in_catalog()) == text, "run `make docs`"


def test_handwritten_text_is_preserved() -> None:
    """Only the text between the marks is regenerated."""
    page = "By hand.\n\n## a\n\n<!-- made by make docs: arguments of a -->\n{}<!-- end -->\n\nAlso | by hand.\n"
    fresh = "It takes no arguments.\n"
    assert written(page.format("old\n"), offer(make("a"))) == page.format(fresh)


def test_every_tool_has_a_section_with_its_arguments() -> None:
    """A tool without a section gets one, and a section without its table gets the table; a second run changes
    nothing.
    """
    page = "# Tools\n\n## a\n\nWords of its own.\n\n## Last\n\nThe end.\n"
    fresh = written(page, offer(make("a"), make("b")))
    table = "<!-- made by make docs: arguments of {} -->\nIt takes no arguments.\n<!-- end -->\n"
    assert f"## a\n\nWords of its own.\n\n{table.format('a')}\n## Last\n\nThe end.\n" in fresh
    assert fresh.endswith(f"## b\n\nDo it. Then rest.\n\nNever twice.\n\n{table.format('b')}")
    assert written(fresh, offer(make("a"), make("b"))) == fresh


def test_bar_does_not_break_a_table() -> None:
    """A description with special characters stays within its cell."""
    page = "<!-- made by make docs: tools -->\n<!-- end -->"
    assert "| Either \\| or |" in written(page, offer(replace(make("a"), description="Either | or.")))


def test_unknown_table_is_an_error() -> None:
    """A misspelt mark is an error, and not left empty."""
    with pytest.raises(LookupError):
        written("<!-- made by make docs: sumary -->\n<!-- end -->", offer())


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"anyOf": [{"type": "boolean"}, {"enum": ["a", "b"]}, {"type": "null"}]}, "true or false or `a`, `b`"),
        ({"const": "x"}, "`x`"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20}, "array of string, 1–20"),
        ({"type": "array"}, "array of any JSON"),
        ({"type": "integer", "minimum": 1}, "integer, from 1"),
        ({"type": "number", "maximum": 1_000_000}, "number, 1,000,000 at most"),
        ({"$ref": "#/$defs/Stance"}, "`for`"),
        ({}, "any JSON"),
    ],
)
def test_argument_types_are_described(part: dict[str, Any], words: str) -> None:
    """Types, named values and bounds are described in readable form."""
    assert takes(part, {"$defs": {"Stance": {"enum": ["for"]}}}) == words
