"""Pins: what each of a server's tools was when the operator accepted it, in a file of the state directory.

The first listing of a source is accepted as it is. From then on a tool that is another one, or a new one, is
quarantined until the operator approves it (decision 45).
"""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from .upstream_definition import UpstreamDefinition, changes, served_name

PINS_DIRECTORY: Final = "pins"
"""Of the state directory: a file a source, mode 0600."""
_MAX_BYTES: Final = 64 * 1024 * 1024


class PinError(Exception):
    """The file of the pins cannot be used; the message says which, why, and what to do."""


class ToolPin(msgspec.Struct, frozen=True):
    """One tool as it was accepted."""

    served: str
    """What it is called here, for good."""
    definition: UpstreamDefinition


Pins = Mapping[str, ToolPin]
"""By the server's name of the tool."""


class _File(msgspec.Struct):
    tools: dict[str, ToolPin]


@dataclass(frozen=True, slots=True)
class PinComparison:
    """One tool of a listing."""

    definition: UpstreamDefinition
    served: str
    objection: str | None = None
    """Why it is quarantined: what it is, or what has changed."""


def judge(
    source: str, pins: Pins | None, listed: Sequence[UpstreamDefinition], taken: Container[str]
) -> list[PinComparison]:
    """What becomes of each tool of a listing; ``pins`` is None before the first one."""
    return named(source, pins, listed, taken, objections(pins, listed))


def objections(pins: Pins | None, listed: Iterable[UpstreamDefinition]) -> dict[str, str | None]:
    """Why each tool is quarantined, None where it is not, by the server's names. Of thousands it takes a while."""
    return {tool.name: None if pins is None else _objection(pins.get(tool.name), tool) for tool in listed}


def named(
    source: str,
    pins: Pins | None,
    listed: Iterable[UpstreamDefinition],
    taken: Container[str],
    objected: Mapping[str, str | None],
) -> list[PinComparison]:
    """The tools of a listing with their names here. Each name is given once: tools of before have theirs, and new ones
    take what ``taken`` and they leave.
    """
    given: set[str] = set()
    judged: list[PinComparison] = []
    known: Pins = pins or {}
    others, or_known = _AnyOf(taken, given), _AnyOf(taken, given, {pin.served for pin in known.values()})
    # Those with a name first, so that a new one takes nobody's.
    for definition in sorted(listed, key=lambda definition: definition.name not in known):
        pin = known.get(definition.name)
        if pin is not None and pin.served not in others:
            served = pin.served
        else:
            served = served_name(source, definition.name, or_known)
        given.add(served)
        judged.append(PinComparison(definition, served, objected[definition.name]))
    return judged


def _objection(pin: ToolPin | None, definition: UpstreamDefinition) -> str | None:
    if pin is None:
        return "is new"
    if pin.definition.digest == definition.digest:
        return None
    return f"has another {changes(pin.definition, definition)}"


def accepted(pins: Pins | None, judged: Iterable[PinComparison]) -> Pins:
    """The pins with these tools as they are now."""
    return {**(pins or {}), **{one.definition.name: ToolPin(one.served, one.definition) for one in judged}}


class PinFile:
    """The pins of one source, on the disk."""

    def __init__(self, directory: Path, source: str) -> None:
        self._path = directory / f"{source}.json"

    def __repr__(self) -> str:
        return f"<PinFile {self._path.name}>"

    def read(self) -> Pins | None:
        """The pins; None where there was no listing yet.

        Raises:
            PinError: the file cannot be read, or holds none: what was accepted is not known, so nothing is.
        """
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_BYTES), type=_File).tools
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PinError(f"its pins, {self._path}, cannot be read ({error.strerror})") from None
        except msgspec.DecodeError as error:
            raise PinError(
                f"{self._path} holds no pins ({error}); put the right file back, or remove it to accept its tools anew"
            ) from None

    def write(self, pins: Pins) -> None:
        """Put these in their place, whole or not at all.

        Raises:
            PinError: the file cannot be written.
        """
        content = msgspec.json.format(msgspec.json.encode(_File(dict(pins)), order="deterministic"))
        unfinished = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished.unlink(missing_ok=True)
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - of a descriptor
                file.write(content + b"\n")
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path)
        except OSError as error:
            raise PinError(f"its pins, {self._path}, cannot be written ({error.strerror})") from None


class _AnyOf:
    """What is in one of several."""

    def __init__(self, *parts: Container[str]) -> None:
        self._parts = parts

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)
