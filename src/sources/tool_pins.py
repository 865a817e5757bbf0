"""Pins: the approved definitions of a server's tools, in a file of the state directory.

The first listing of a source is pinned as it is. Afterwards, new and changed tools are quarantined until the operator
approves them (decision 45).
"""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from .tool_naming import ToolNaming
from .upstream_definition import UpstreamDefinition, changes

PINS_DIRECTORY: Final = "pins"
"""A directory in the state directory, with one file per source, mode 0600."""
_MAX_BYTES: Final = 64 * 1024 * 1024


class PinError(Exception):
    """The pin file cannot be used; the message names the file, the reason and the fix."""


class ToolPin(msgspec.Struct, frozen=True):
    """One tool as it was approved."""

    served: str
    """Its name in this daemon, which never changes."""
    definition: UpstreamDefinition
    titled: bool = False
    """Whether the definition has the title; earlier versions did not pin it."""


Pins = Mapping[str, ToolPin]
"""Pins by the server's tool names."""


class _File(msgspec.Struct):
    tools: dict[str, ToolPin]


@dataclass(frozen=True, slots=True)
class PinComparison:
    """One tool of a listing, compared with its pin."""

    definition: UpstreamDefinition
    served: str
    quarantine_reason: str | None = None
    """Why it is quarantined: it is new, or what has changed."""
    pinned: UpstreamDefinition | None = None
    """What was approved, if it is quarantined because it has changed."""


def compare_listing(
    source: str,
    pins: Pins | None,
    listed: Sequence[UpstreamDefinition],
    taken: Container[str],
    naming: ToolNaming = ToolNaming(),  # noqa: B008 - frozen
) -> list[PinComparison]:
    """Compares each tool of a listing with its pin; ``pins`` is None before the first listing."""
    return assign_names(source, pins, listed, taken, quarantine_reasons(pins, listed), naming)


def quarantine_reasons(pins: Pins | None, listed: Iterable[UpstreamDefinition]) -> dict[str, str | None]:
    """Returns why each tool is quarantined, or None, by the server's names. Slow for thousands of tools."""
    return {tool.name: None if pins is None else _quarantine_reason(pins.get(tool.name), tool) for tool in listed}


def assign_names(
    source: str,
    pins: Pins | None,
    listed: Iterable[UpstreamDefinition],
    taken: Container[str],
    reasons: Mapping[str, str | None],
    naming: ToolNaming = ToolNaming(),  # noqa: B008 - frozen
) -> list[PinComparison]:
    """Returns the tools of a listing, with names that are unique in this daemon, without those that get none.

    Pinned tools keep their names; new ones get names that are free among theirs and ``taken``.
    """
    assigned: set[str] = set()
    comparisons: list[PinComparison] = []
    known: Pins = pins or {}
    unavailable = _AnyOf(taken, assigned)
    unavailable_or_pinned = _AnyOf(taken, assigned, {pin.served for pin in known.values()})
    # Pinned tools first, so that a new one does not take their names.
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
        comparisons.append(PinComparison(definition, served, reason, approved))
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


class PinFile:
    """The pin file of one source."""

    def __init__(self, directory: Path, source: str) -> None:
        self._path = directory / f"{source}.json"

    def __repr__(self) -> str:
        return f"<PinFile {self._path.name}>"

    def read(self) -> Pins | None:
        """Returns the pins, or None before the first listing.

        Raises:
            PinError: the file cannot be read or decoded, so no tool counts as approved.
        """
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_BYTES), type=_File).tools
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PinError(f"the pin file {self._path} cannot be read ({error.strerror})") from None
        except msgspec.DecodeError as error:
            raise PinError(
                f"{self._path} is not a pin file ({error}); restore it, or remove it to pin the current tools"
            ) from None

    def write(self, pins: Pins) -> None:
        """Replaces the pins atomically.

        Raises:
            PinError: the file cannot be written.
        """
        content = msgspec.json.format(msgspec.json.encode(_File(dict(pins)), order="deterministic"))
        unfinished = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished.unlink(missing_ok=True)
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(content + b"\n")
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path)
        except OSError as error:
            raise PinError(f"the pin file {self._path} cannot be written ({error.strerror})") from None


class _AnyOf:
    """The union of several containers."""

    def __init__(self, *parts: Container[str]) -> None:
        self._parts = parts

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)
