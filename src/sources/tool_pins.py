"""Pins: the approved definitions of a server's tools.

The first listing of a source is pinned unchanged. Afterwards, new and changed tools are quarantined until the operator
approves them (decision 45).
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from .tool_naming import ToolNaming
from .upstream_definition import UpstreamDefinition, changes, definition_diff


class PinError(Exception):
    """Stored pins cannot be used; the message says where they are, the reason and the fix."""


class ToolPin(msgspec.Struct, frozen=True):
    """The approved definition of one tool."""

    served: str
    """The tool's name in this daemon, which never changes."""
    definition: UpstreamDefinition
    titled: bool = False
    """Whether the definition includes the title, which earlier versions did not pin."""


Pins = Mapping[str, ToolPin]
"""Pins by the server's tool names."""


@dataclass(frozen=True, slots=True)
class PinComparison:
    """One tool of a listing, compared with its pin."""

    definition: UpstreamDefinition
    served: str
    quarantine_reason: str | None = None
    """Why the tool is quarantined: it is new, or a part of it has changed; None if it is not."""
    pinned: UpstreamDefinition | None = None
    """The approved definition, if the tool is quarantined because it has changed."""
    diff: str = ""
    """The lines that differ from the approved definition, if the tool is quarantined."""


def compare_listing(
    source: str,
    pins: Pins | None,
    listed: Sequence[UpstreamDefinition],
    taken: Container[str],
    naming: ToolNaming = ToolNaming(),  # noqa: B008 - frozen
    earlier: Sequence[PinComparison] = (),
) -> list[PinComparison]:
    """Compares each tool of a listing with its pin; ``pins`` is None before the first listing. ``earlier`` are
    comparisons of the same listing, with other pins.
    """
    reasons = quarantine_reasons(pins, listed)
    diffs = quarantine_diffs(pins, listed, reasons, earlier)
    return assign_names(source, pins, listed, taken, reasons, diffs, naming)


def quarantine_reasons(pins: Pins | None, listed: Iterable[UpstreamDefinition]) -> dict[str, str | None]:
    """Returns by the server's names why each tool is quarantined; None if it is not. Slow for thousands of tools."""
    return {tool.name: None if pins is None else _quarantine_reason(pins.get(tool.name), tool) for tool in listed}


def quarantine_diffs(
    pins: Pins | None,
    listed: Iterable[UpstreamDefinition],
    reasons: Mapping[str, str | None],
    earlier: Iterable[PinComparison] = (),
) -> dict[str, str]:
    """Returns the differences between quarantined tools and their approved definitions. Slow for thousands of tools,
    unless the diffs are in ``earlier`` comparisons of the same listing.
    """
    approved = {name: pin.definition for name, pin in (pins or {}).items()}
    known = {comparison.definition.name: comparison for comparison in earlier if comparison.quarantine_reason}
    diffs: dict[str, str] = {}
    for tool in listed:
        if reasons[tool.name] is not None:
            before, same = approved.get(tool.name), known.get(tool.name)
            is_same = same is not None and same.pinned == before
            diffs[tool.name] = (
                same.diff if same and is_same else definition_diff(before or UpstreamDefinition(""), tool)
            )
    return diffs


def assign_names(
    source: str,
    pins: Pins | None,
    listed: Iterable[UpstreamDefinition],
    taken: Container[str],
    reasons: Mapping[str, str | None],
    diffs: Mapping[str, str],
    naming: ToolNaming = ToolNaming(),  # noqa: B008 - frozen
) -> list[PinComparison]:
    """Returns the tools of a listing with names that are unique in this daemon. Omits tools that get no name.

    Pinned tools keep their names; new tools get names that are neither pinned nor ``taken``.
    """
    assigned: set[str] = set()
    comparisons: list[PinComparison] = []
    known: Pins = pins or {}
    unavailable = _AnyOf(taken, assigned)
    unavailable_or_pinned = _AnyOf(taken, assigned, {pin.served for pin in known.values()})
    # Pinned tools come first, so that a new tool does not take their names.
    for definition in sorted(listed, key=lambda definition: definition.name not in known):
        pin = known.get(definition.name)
        is_free = pin is not None and pin.served not in unavailable
        others = unavailable if is_free else unavailable_or_pinned
        pinned = pin.served if pin is not None and is_free else None
        served = naming.served(source, definition.name, pinned, others)
        if served is None:
            continue
        assigned.add(served)
        reason = reasons[definition.name]
        approved = None if pin is None or reason is None else pin.definition
        diff = "" if reason is None else diffs.get(definition.name, "")
        comparisons.append(PinComparison(definition, served, reason, approved, diff))
    return comparisons


def _quarantine_reason(pin: ToolPin | None, definition: UpstreamDefinition) -> str | None:
    if pin is None:
        return "is new"
    if not pin.titled:
        definition = msgspec.structs.replace(definition, title="")
    if pin.definition.digest == definition.digest:
        return None
    return f"has another {changes(pin.definition, definition)}"


def approved_pins(pins: Pins | None, comparisons: Iterable[PinComparison]) -> Pins:
    """Returns the pins, updated with the current definitions of these tools."""
    return {
        **(pins or {}),
        **{
            comparison.definition.name: ToolPin(comparison.served, comparison.definition, titled=True)
            for comparison in comparisons
        },
    }


class PinConflictError(Exception):
    """Another version was approved meanwhile."""

    def __init__(self, tool: str) -> None:
        super().__init__(f"another version of {tool!r} was approved meanwhile")
        self.tool: Final = tool


def merged_approval(stored: Pins | None, seen: Pins | None, comparisons: Iterable[PinComparison]) -> Pins:
    """Returns the stored pins, updated with the current definitions of these tools, which were compared with ``seen``.

    Raises:
        PinConflictError: another version of one of them has been pinned meanwhile.
    """
    known: Pins = stored or {}
    changed = []
    for comparison in comparisons:
        name = comparison.definition.name
        pin = known.get(name)
        if pin is not None and pin.titled and pin.definition.digest == comparison.definition.digest:
            continue  # the same version was approved
        if pin != (seen or {}).get(name):
            raise PinConflictError(name)
        changed.append(comparison)
    return approved_pins(stored, changed)


class _AnyOf:
    """The union of several containers."""

    def __init__(self, *parts: Container[str]) -> None:
        self._parts = parts

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)
