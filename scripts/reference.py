"""Generates the tables of docs/tools.md from the tools: ``python -m scripts.reference``.

A table is between ``<!-- made by make docs: NAME -->`` and ``<!-- end -->``; the text around it is written by hand.
A tool without a section gets one, with its arguments.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from toold.protocol.tool_call import DEFAULT_TIMEOUT_S
from toold.tools import (
    DEFAULT_TOOLSET,
    EFFECT_LOG,
    Tool,
    ToolCatalog,
    ToolRegistry,
    ToolsetView,
    estimate_tokens,
    load_registry,
    shipped_toolsets,
    simulated_tools,
)

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = "docs/tools.md"

_BLOCK: Final = re.compile(r"<!-- made by make docs: (?P<name>[^>]+?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
_STEPS: Final = "next_step_required"
"""The argument that only workflow tools have."""

Schema = Mapping[str, Any]


def built_in_catalog() -> ToolCatalog:
    """The catalog of the built-in tools, with the simulator's, but without those of other packages."""
    own = [tool for tool in load_registry().tools if tool.source == "toold"]
    return ToolCatalog(ToolRegistry([*own, *simulated_tools(Path(EFFECT_LOG))]), shipped_toolsets(), DEFAULT_TOOLSET)


def written(text: str, catalog: ToolCatalog) -> str:
    """The page with its tables regenerated.

    Raises:
        LookupError: the page names an unknown table.
    """
    for tool in catalog.registry.tools:
        text = _with_section(text, tool)
    return _BLOCK.sub(lambda found: _block(found["name"], "\n".join(_table_of(found["name"], catalog))), text)


def _block(name: str, body: str) -> str:
    return f"<!-- made by make docs: {name} -->\n{body}\n<!-- end -->"


def _with_section(text: str, tool: Tool) -> str:
    heading, name = f"\n## {tool.name}\n", f"arguments of {tool.name}"
    if heading not in text:
        text = f"{text.rstrip()}\n{heading}\n{tool.description}\n"
    if f": {name} -->" not in text:
        before, _, after = text.partition(heading)
        section, mark, rest = after.partition("\n## ")
        text = f"{before}{heading}{section.rstrip()}\n\n{_block(name, '')}\n{mark}{rest}"
    return text


# --- tables ----------------------------------------------------------------------------------------------------------


def _table_of(name: str, catalog: ToolCatalog) -> Iterator[str]:
    tables: dict[str, Callable[[ToolCatalog], Iterator[str]]] = {
        "toolsets": _toolsets,
        "tools": _tools,
        "arguments of all that work in steps": _shared_arguments,
    }
    if name in tables:
        return tables[name](catalog)
    asked = name.removeprefix("arguments of ")
    if asked == name or asked not in catalog.registry:
        raise LookupError(f"there is no table {name!r}")
    return _arguments_of(catalog.registry.get(asked), catalog)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield "|---" * len(head) + "|"
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in escaped)


def _toolsets(catalog: ToolCatalog) -> Iterator[str]:
    head = ("toolset", "tools", "its listing, in tokens (estimate)", "its tools")
    return _table(head, (_toolset(catalog.view(name), catalog) for name in catalog.names))


def _toolset(selection: ToolsetView, catalog: ToolCatalog) -> tuple[str, ...]:
    name, tokens = selection.toolset.name, round(_tokens(selection.infos), -2)
    return f"`{name}`", str(len(selection.tools)), f"{tokens:,}", _which(selection, catalog)


def _which(selection: ToolsetView, catalog: ToolCatalog) -> str:
    said = (
        "all"
        if len(selection.tools) == len(catalog.registry.tools)
        else ", ".join(f"`{one}`" for one in selection.tools)
    )
    return f"{said}; the default toolset" if selection.toolset.name == catalog.default else said


def _tokens(listing: object) -> int:
    return estimate_tokens([msgspec.json.encode(listing).decode()])


def _tools(catalog: ToolCatalog) -> Iterator[str]:
    return _table(
        ("tool", "what it does", "hints", "permits", "deadline", "toolsets"),
        (
            (
                f"[`{tool.name}`](#{tool.name.lower()})",
                _first_sentence(tool),
                ", ".join(_hints(tool)),
                _permits(tool),
                f"{tool.timeout_s or DEFAULT_TIMEOUT_S:g} s",
                _holders(tool, catalog),
            )
            for tool in catalog.registry.tools
        ),
    )


def _first_sentence(tool: Tool) -> str:
    paragraph = " ".join(tool.description.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0].removesuffix(".")


def _hints(tool: Tool) -> list[str]:
    said = tool.annotations
    words = {
        "read-only": said.read_only_hint,
        "writes": not said.read_only_hint,
        "may destroy": said.destructive_hint,
        "repeatable": said.idempotent_hint and not said.read_only_hint,
        "reaches out": said.open_world_hint,
    }
    return [word for word, true in words.items() if true]


def _permits(tool: Tool) -> str:
    if tool.unmetered or tool.orchestration:
        return "none"
    return "daemon, session, vendor" if tool.annotations.open_world_hint else "daemon, session"


def _holders(tool: Tool, catalog: ToolCatalog) -> str:
    holders = [name for name in catalog.names if tool.name in catalog.view(name).tools]
    return "all" if len(holders) == len(catalog.names) else ", ".join(f"`{name}`" for name in holders)


# --- arguments -------------------------------------------------------------------------------------------------------


def _arguments_of(tool: Tool, catalog: ToolCatalog) -> Iterator[str]:
    schema = tool.info.input_schema
    own = _properties(tool)
    if _STEPS in own:
        shared = _in_all_steps(catalog)
        own = {name: part for name, part in own.items() if name not in shared}
    if own:
        return _arguments(own, schema)
    return iter(["It takes no arguments."])


def _shared_arguments(catalog: ToolCatalog) -> Iterator[str]:
    tool = next(tool for tool in catalog.registry.tools if _STEPS in _properties(tool))
    return _arguments(_in_all_steps(catalog), tool.info.input_schema)


def _in_all_steps(catalog: ToolCatalog) -> dict[str, Schema]:
    """The arguments that all tools that work in steps have in common, with the same schema."""
    all_of_them = [own for tool in catalog.registry.tools if _STEPS in (own := _properties(tool))]
    first, *others = all_of_them
    return {name: part for name, part in first.items() if all(other.get(name) == part for other in others)}


def _properties(tool: Tool) -> dict[str, Schema]:
    properties: dict[str, Schema] = tool.info.input_schema.get("properties", {})
    return properties


def _arguments(properties: Mapping[str, Schema], root: Schema) -> Iterator[str]:
    required = root.get("required", ())
    return _table(
        ("argument", "type", "default", "description"),
        (
            (f"`{name}`", takes(part, root), _default(part, must=name in required), _meaning(part))
            for name, part in properties.items()
        ),
    )


def _meaning(part: Schema) -> str:
    return str(part.get("description", "")).removesuffix(".")


def _default(part: Schema, *, must: bool) -> str:
    if must:
        return "required"
    value = part.get("default")
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def takes(part: Schema, root: Schema) -> str:
    """The type of a part of a schema in words: ``array of string, 1–20``, ``integer, from 1``, `` `list`, `info` ``."""
    part = _resolved(part, root)
    options = [one for one in part.get("anyOf", part.get("oneOf", [])) if one.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(takes(one, root) for one in options))
    if "enum" in part or "const" in part:
        return ", ".join(f"`{one}`" for one in part.get("enum", [part.get("const")]))
    match part.get("type"):
        case "array":
            items = takes(part["items"], root) if part.get("items") else "any JSON"
            return f"array of {items}" + _bounds(part.get("minItems"), part.get("maxItems"))
        case "integer" | "number" as kind:
            return f"{kind}" + _bounds(part.get("minimum"), part.get("maximum"))
        case "boolean":
            return "true or false"
        case str() as kind:
            return kind
        case list() as kinds:
            return " or ".join(kinds)
        case _:
            return "any JSON"


def _bounds(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f", {least:,.10g}–{most:,.10g}"
    if least is not None:
        return f", from {least:,.10g}"
    return "" if most is None else f", {most:,.10g} at most"


def _resolved(part: Schema, root: Schema) -> Schema:
    name = part.get("$ref", "").rpartition("/")[2]
    resolved: Schema = root["$defs"][name] if name else part
    return resolved


def main() -> None:
    """Rewrite the page if its tables are out of date."""
    path = ROOT / PAGE
    text = path.read_text(encoding="utf-8")
    if (fresh := written(text, built_in_catalog())) != text:
        path.write_text(fresh, encoding="utf-8")
        print(f"{PAGE}: updated")  # noqa: T201 - for the person who ran it


if __name__ == "__main__":
    main()
