"""A server's listing, held against what was accepted → tools here, those that are held back among them, and notes."""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...tools import Answer, JsonSchema, Tool, ToolContext
from ..source import SourceNote
from .tool_pins import PinComparison, Pins, judge, named, objections
from .upstream_definition import UpstreamDefinition, UpstreamListing

Call = Callable[[str, dict[str, Any], ToolContext], Awaitable[Answer | str]]
"""Calls the server's tool of this name."""


@dataclass(frozen=True, slots=True)
class UpstreamCatalog:
    """What a server has, as it was looked at last."""

    source: str
    judged: Sequence[PinComparison] = ()
    schemas: Mapping[str, JsonSchema | str] = field(default_factory=dict)
    """What arguments are checked by, by the tools' names; text is what is wrong with one."""
    outputs: Mapping[str, str | None] = field(default_factory=dict)
    """What is wrong with the schemas of what tools return, by the names of those that have one."""
    left_out: Sequence[SourceNote] = ()
    """Of the listing."""

    def tools(self, call: Call, timeout_s: float) -> list[Tool]:
        """All whose schema can be used."""
        return [
            _tool(self.source, one, schema, self._output(one.definition), call, timeout_s)
            for one in self.judged
            if isinstance(schema := self.schemas.get(one.definition.name), JsonSchema)
        ]

    def _output(self, tool: UpstreamDefinition) -> dict[str, Any] | None:
        """The schema of what a tool returns, where clients can hold its answers against it."""
        return None if self.outputs.get(tool.name) else tool.output_schema

    @property
    def notes(self) -> list[SourceNote]:
        """What is to be said of the others."""
        notes = list(self.left_out)
        for one in self.judged:
            schema = self.schemas.get(one.definition.name)
            if not isinstance(schema, JsonSchema):
                notes.append(SourceNote("omitted", one.definition.name, str(schema)))
            elif (wrong := self.outputs.get(one.definition.name)) is not None:
                notes.append(SourceNote("repaired", one.definition.name, f"its outputSchema is not shown: {wrong}"))
            if one.objection is not None:
                notes.append(SourceNote("quarantined", one.definition.name, one.objection))
        return notes

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The server's names of the tools that wait for approval."""
        return tuple(one.definition.name for one in self.judged if one.objection is not None)

    def meant(self, tool: str | None) -> list[PinComparison]:
        """Of those that are held back the one of this name, here or at the server; or all."""
        return [
            one for one in self.judged if one.objection is not None and tool in {None, one.definition.name, one.served}
        ]

    def judged_anew(self, pins: Pins | None, taken: Container[str]) -> "UpstreamCatalog":
        """The same listing, held against these."""
        return replace(self, judged=judge(self.source, pins, [one.definition for one in self.judged], taken))


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """What of a listing takes its time."""

    schemas: Mapping[str, JsonSchema | str]
    outputs: Mapping[str, str | None]
    objections: Mapping[str, str | None]


def prepare(listing: UpstreamListing, pins: Pins | None) -> PreparedTool:
    """In a thread: a schema takes part of a millisecond, or more."""
    return PreparedTool(
        {tool.name: _schema(tool) for tool in listing.tools},
        {tool.name: _wrong(tool.output_schema) for tool in listing.tools if tool.output_schema is not None},
        objections(pins, listing.tools),
    )


def catalogd(
    source: str, listing: UpstreamListing, pins: Pins | None, taken: Container[str], prepared: PreparedTool
) -> UpstreamCatalog:
    """What becomes of a listing. Nothing may come between that and its being put out: of two sources that are listed at
    once, one has a name.
    """
    judged = named(source, pins, listing.tools, taken, prepared.objections)
    return UpstreamCatalog(source, judged, prepared.schemas, prepared.outputs, listing.notes)


def _schema(tool: UpstreamDefinition) -> JsonSchema | str:
    try:
        return JsonSchema({"type": "object", **tool.input_schema})
    except ValueError as error:
        return str(error)


def _wrong(output: dict[str, Any]) -> str | None:
    """What is wrong with the schema of what a tool returns: clients would refuse whatever they hold against it."""
    try:
        JsonSchema(output)
    except ValueError as error:
        return str(error)
    return None


def _tool(
    source: str, one: PinComparison, arguments: JsonSchema, output: dict[str, Any] | None, call: Call, timeout_s: float
) -> Tool:
    definition = one.definition
    return Tool(
        one.served,
        definition.description or f"The tool {definition.name} of {source}.",
        arguments,
        partial(call, definition.name),
        definition.annotations,
        timeout_s=timeout_s,
        source=source,
        output_schema=output,
        withheld=_withheld(source, one),
    )


def _withheld(source: str, one: PinComparison) -> str | None:
    if one.objection is None:
        return None
    return (
        f"The tool {one.served!r} {one.objection} since the tools of {source} were accepted; it is held back until the "
        f"operator has looked at it (`toold sources check {source}`, `toold sources approve {source} {one.served}`)."
    )
