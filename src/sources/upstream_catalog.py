"""Compares a server's listing with its pins, and turns it into tools, including quarantined ones, and notes."""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from ..protocol.user_credential import CredentialField
from ..tools import JsonSchema, Tool, ToolContext, ToolOutput
from .source import QuarantinedKind, QuarantinedVersion, SourceNote
from .tool_naming import ToolNaming
from .tool_pins import PinComparison, Pins, assign_names, compare_listing, quarantine_diffs, quarantine_reasons
from .upstream_definition import UpstreamDefinition, UpstreamListing

_UNNAMED: Final = 'its name is taken or invalid here, and prefix is "never"; rename can give it another name'

Call = Callable[[str, dict[str, Any], ToolContext], Awaitable[ToolOutput | str]]
"""Calls the server's tool of this name."""


@dataclass(frozen=True, slots=True)
class UpstreamCatalog:
    """The tools of a server's latest listing."""

    source: str
    comparisons: Sequence[PinComparison] = ()
    schemas: Mapping[str, JsonSchema | str] = field(default_factory=dict)
    """Argument schemas by tool name; a string is the error of an invalid schema."""
    outputs: Mapping[str, str | None] = field(default_factory=dict)
    """Errors in output schemas, by tool name."""
    listing_notes: Sequence[SourceNote] = ()
    naming: ToolNaming = field(default_factory=ToolNaming)

    def tools(self, call: Call, timeout_s: float, credentials: tuple[CredentialField, ...]) -> list[Tool]:
        """Returns the tools whose argument schema is usable. Their calls need ``credentials`` of the caller."""
        return [
            _tool(self.source, comparison, schema, self._output(comparison.definition), call, timeout_s, credentials)
            for comparison in self.comparisons
            if isinstance(schema := self.schemas.get(comparison.definition.name), JsonSchema)
        ]

    def _output(self, tool: UpstreamDefinition) -> dict[str, Any] | None:
        """Returns a tool's output schema if clients can validate its answers with it."""
        return None if self.outputs.get(tool.name) else tool.output_schema

    @property
    def notes(self) -> list[SourceNote]:
        """The notes about omitted, repaired and quarantined tools."""
        notes = list(self.listing_notes)
        for comparison in self.comparisons:
            schema = self.schemas.get(comparison.definition.name)
            if not isinstance(schema, JsonSchema):
                notes.append(SourceNote("omitted", comparison.definition.name, str(schema)))
            elif (wrong := self.outputs.get(comparison.definition.name)) is not None:
                notes.append(
                    SourceNote("repaired", comparison.definition.name, f"its outputSchema is not shown: {wrong}")
                )
            if comparison.quarantine_reason is not None:
                now, reason = comparison.definition, comparison.quarantine_reason
                notes.append(SourceNote("quarantined", now.name, reason, comparison.diff, now.version))
        return notes

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The server's names of the quarantined tools."""
        return tuple(
            comparison.definition.name for comparison in self.comparisons if comparison.quarantine_reason is not None
        )

    def waiting(self, kind: QuarantinedKind) -> list[QuarantinedVersion]:
        """Returns the versions that wait for approval."""
        versions = []
        for comparison in self.comparisons:
            if comparison.quarantine_reason is not None:
                before, now, reason = comparison.pinned, comparison.definition, comparison.quarantine_reason
                approved = "" if before is None else before.digest
                versions.append(QuarantinedVersion(kind, now.name, reason, comparison.diff, now.digest, approved))
        return versions

    @property
    def in_quarantine(self) -> list[PinComparison]:
        """The quarantined tools, compared with their pins."""
        return [comparison for comparison in self.comparisons if comparison.quarantine_reason is not None]

    def select_quarantined(self, tool: str, digest: str) -> list[PinComparison]:
        """Returns the quarantined tool of this served or upstream name, if its digest begins with ``digest``."""
        return [
            comparison
            for comparison in self.in_quarantine
            if tool in {comparison.definition.name, comparison.served}
            and comparison.definition.digest.startswith(digest)
        ]

    def compared_with(self, pins: Pins | None, taken: Container[str]) -> "UpstreamCatalog":
        """Returns the catalog of the same listing, compared with these pins."""
        listed = [comparison.definition for comparison in self.comparisons]
        comparisons = compare_listing(self.source, pins, listed, taken, self.naming, self.comparisons)
        return replace(self, comparisons=comparisons)


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """The parts of a catalog that are slow to compute."""

    schemas: Mapping[str, JsonSchema | str]
    outputs: Mapping[str, str | None]
    quarantine_reasons: Mapping[str, str | None]
    diffs: Mapping[str, str]
    """The diffs of the quarantined tools."""


def prepare(listing: UpstreamListing, pins: Pins | None) -> PreparedTool:
    """Checks schemas and pins. Call it in a thread, because each schema takes up to some milliseconds."""
    reasons = quarantine_reasons(pins, listing.tools)
    return PreparedTool(
        {tool.name: _schema(tool) for tool in listing.tools},
        {tool.name: _schema_error(tool.output_schema) for tool in listing.tools if tool.output_schema is not None},
        reasons,
        quarantine_diffs(pins, listing.tools, reasons),
    )


def build_catalog(
    source: str,
    listing: UpstreamListing,
    pins: Pins | None,
    taken: Container[str],
    prepared: PreparedTool,
    naming: ToolNaming = ToolNaming(),  # noqa: B008 - frozen
) -> UpstreamCatalog:
    """Returns the catalog of a listing. Publish it without an await in between; otherwise two sources may assign the
    same name.
    """
    comparisons = assign_names(source, pins, listing.tools, taken, prepared.quarantine_reasons, prepared.diffs, naming)
    named = {comparison.definition.name for comparison in comparisons}
    unnamed = [SourceNote("omitted", tool.name, _UNNAMED) for tool in listing.tools if tool.name not in named]
    return UpstreamCatalog(source, comparisons, prepared.schemas, prepared.outputs, (*listing.notes, *unnamed), naming)


def _schema(tool: UpstreamDefinition) -> JsonSchema | str:
    try:
        return JsonSchema({"type": "object", **tool.input_schema})
    except ValueError as error:
        return str(error)


def _schema_error(output: dict[str, Any]) -> str | None:
    """Returns the error in an output schema, because of which clients would reject every answer."""
    try:
        JsonSchema(output)
    except ValueError as error:
        return str(error)
    return None


def _tool(
    source: str,
    comparison: PinComparison,
    arguments: JsonSchema,
    output: dict[str, Any] | None,
    call: Call,
    timeout_s: float,
    credentials: tuple[CredentialField, ...],
) -> Tool:
    definition = comparison.definition
    return Tool(
        comparison.served,
        definition.description or f"The tool {definition.name} of {source}.",
        arguments,
        partial(call, definition.name),
        definition.annotations,
        timeout_s=timeout_s,
        source=source,
        output_schema=output,
        credentials=credentials,
        withheld=withheld_reason(source, comparison),
        mcp=definition.shown or None,
    )


def withheld_reason(source: str, comparison: PinComparison) -> str | None:
    """Why a tool is not available to callers; None if it is."""
    if comparison.quarantine_reason is None:
        return None
    return (
        f"The tool {comparison.served!r} {comparison.quarantine_reason} since the tools of {source} were pinned; it is "
        f"quarantined until the operator approves it (`toold sources review {source}`)."
    )
