"""Stores pins: in files of the state directory, or in a database that several nodes share.

A set of pins has a revision. It is replaced only if it still has the revision that was read, so that a change by
another node is never lost.
"""

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from ..store import SharedPinsPort, StoreError
from .tool_pins import PinError, Pins, ToolPin

PINS_DIRECTORY: Final = "pins"
"""A directory in the state directory, with one file per set of pins, mode 0600."""
_MAX_BYTES: Final = 64 * 1024 * 1024


class KeptPins(NamedTuple):
    """A stored set of pins."""

    pins: Pins
    revision: int
    """Greater after each change."""


class PinStorage(Protocol):
    """Pins by the name of their set: the source's name, with a suffix for its prompts and its instructions."""

    async def read(self, name: str) -> KeptPins | None:
        """Returns the pins; None before the first listing.

        Raises:
            PinError: the pins cannot be read, so no tool counts as approved.
        """
        ...

    async def replace(self, name: str, pins: Pins, revision: int | None) -> int | None:
        """Stores pins if the stored pins have this revision; with None, if there are no stored pins. Returns the new
        revision; None if other pins are stored.

        Raises:
            PinError: the pins cannot be written.
        """
        ...


class ReadablePins(PinStorage, Protocol):
    """Pins that commands read without an event loop."""

    def read_now(self, name: str) -> Pins | None:
        """Like ``read``, for a command."""
        ...


class _Document(msgspec.Struct):
    tools: dict[str, ToolPin]


def encode_pins(pins: Pins) -> bytes:
    """Returns pins as the JSON of a pin file, with one line per tool.

    For nested lists in a definition, indented lines would take hundreds of times as much space.
    """
    lines = [
        b"%s:%s" % (msgspec.json.encode(name), msgspec.json.encode(pin, order="deterministic"))
        for name, pin in sorted(pins.items())
    ]
    return b'{"tools":{\n' + b",\n".join(lines) + b"\n}}\n"


def decode_pins(content: bytes, place: str, remedy: str) -> Pins:
    """Reads the JSON of pins.

    Raises:
        PinError: the content is not a set of pins.
    """
    try:
        return msgspec.json.decode(content, type=_Document).tools
    except msgspec.DecodeError as error:
        raise PinError(f"{place} is not a pin file ({error}); {remedy}") from None


class PinFiles:
    """The pin files of a daemon without other nodes. Implements ``ReadablePins``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        # The revisions of the sets that this process has written. Other sets have revision 0.
        self._revisions: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<PinFiles in {self._directory.name}>"

    async def read(self, name: str) -> KeptPins | None:
        return await asyncio.to_thread(self._read, name)

    async def replace(self, name: str, pins: Pins, revision: int | None) -> int | None:
        return await asyncio.to_thread(self._replace, name, pins, revision)

    def read_now(self, name: str) -> Pins | None:
        kept = self._read(name)
        return None if kept is None else kept.pins

    def contents(self) -> dict[str, bytes]:
        """Returns the contents of all files by the names of their sets.

        Raises:
            PinError: a file cannot be read, or is damaged.
        """
        names = sorted(path.stem for path in self._directory.glob("*.json"))
        return {name: encode_pins(pins) for name in names if (pins := self.read_now(name)) is not None}

    def write_all(self, contents: Mapping[str, bytes]) -> None:
        """Writes several files. Existing files must have the same pins.

        Raises:
            PinError: a file exists with other pins, or cannot be written.
        """
        for name, content in contents.items():
            pins = self.read_now(name)
            if pins is not None and pins != _decode_stored(name, content):
                raise PinError(f"{self._path(name)} has other pins: move it away")
        for name, content in contents.items():
            self.write(name, content)

    def write(self, name: str, content: bytes) -> None:
        """Replaces a file atomically.

        Raises:
            PinError: the file cannot be written.
        """
        path = self._path(name)
        unfinished = path.with_suffix(".new")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished.unlink(missing_ok=True)
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError as error:
            raise PinError(f"the pin file {path} cannot be written ({error.strerror})") from None

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.json"

    def _read(self, name: str) -> KeptPins | None:
        path = self._path(name)
        with self._lock:
            try:
                with path.open("rb") as file:
                    content = file.read(_MAX_BYTES)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise PinError(f"the pin file {path} cannot be read ({error.strerror})") from None
            revision = self._revisions.get(name, 0)
        return KeptPins(decode_pins(content, str(path), "restore it, or remove it to pin the current tools"), revision)

    def _replace(self, name: str, pins: Pins, revision: int | None) -> int | None:
        with self._lock:
            current = self._revisions.get(name, 0)
            if self._path(name).exists() if revision is None else revision != current:
                return None
            self.write(name, encode_pins(pins))
            self._revisions[name] = current + 1
            return current + 1


class SharedPins:
    """The pins of all nodes, in their database. Implements ``PinStorage``."""

    def __init__(self, port: SharedPinsPort) -> None:
        self._port = port

    async def read(self, name: str) -> KeptPins | None:
        try:
            stored = await self._port.read(name)
        except StoreError as error:
            raise PinError(f"the pins of {name} cannot be read: {error}") from None
        return None if stored is None else KeptPins(_decode_stored(name, stored.content), stored.revision)

    async def replace(self, name: str, pins: Pins, revision: int | None) -> int | None:
        try:
            return await self._port.replace(name, encode_pins(pins), revision)
        except StoreError as error:
            raise PinError(f"the pins of {name} cannot be written: {error}") from None


class KnownPins:
    """The pins that a command has read from a database. Implements ``ReadablePins``."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        """``contents``: the JSON of the pins, by name."""
        self._contents = contents

    async def read(self, name: str) -> KeptPins | None:
        pins = self.read_now(name)
        return None if pins is None else KeptPins(pins, 0)

    async def replace(self, name: str, pins: Pins, revision: int | None) -> int | None:  # noqa: ARG002 - the protocol's
        raise PinError(f"the pins of {name} are only read here")

    def read_now(self, name: str) -> Pins | None:
        content = self._contents.get(name)
        return None if content is None else _decode_stored(name, content)


def _decode_stored(name: str, content: bytes) -> Pins:
    remedy = "restore it, or delete it to pin the current tools"
    return decode_pins(content, f"the row {name!r} of the table toold.source_pins", remedy)
