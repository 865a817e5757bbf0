"""The draft of a record: a file of JSON lines, first the run, then each call when it ends.

An interrupted run leaves the draft, which can be resumed or turned into a record.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from .record import Call, Record, RecordError


class Draft:
    """The draft file, open for appending. Each call is written at once, so a crash of this process loses none."""

    def __init__(self, path: Path, run: Record, calls: list[Call]) -> None:
        """Use ``begin`` or ``reopen``."""
        self.path = path
        self.run = run
        self.calls = calls
        """The calls in the file, in the order in which they ended."""
        self.segment = max((call.segment for call in calls), default=0) + 1
        """The segment number of the calls that are added."""
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    @classmethod
    def begin(cls, path: Path, run: Record) -> Self:
        """Create the file.

        Raises:
            RecordError: it exists already, or cannot be written.
        """
        try:
            with path.open("xb") as file:
                file.write(msgspec.json.encode(run) + b"\n")
        except FileExistsError as error:
            raise RecordError(
                f"{path} is the draft of an interrupted run; resume it with --continue {path}, or delete it"
            ) from error
        except OSError as error:
            raise RecordError(f"{path} cannot be written: {error.strerror}") from error
        return cls(path, run, [])

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Open the draft of an interrupted run. An incomplete last line is removed.

        Raises:
            RecordError: the file cannot be read, or is not a draft.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RecordError(f"{path} cannot be read: {error.strerror}") from error
        whole = content[: content.rfind(b"\n") + 1]
        first, *lines = whole.splitlines() or [b""]
        try:
            run = msgspec.json.decode(first, type=Record)
            calls = [msgspec.json.decode(line, type=Call) for line in lines]
        except msgspec.DecodeError as error:
            raise RecordError(f"{path} is not a draft of a baseline record: {error}") from error
        if len(whole) < len(content):
            with path.open("r+b") as file:
                file.truncate(len(whole))
        return cls(path, run, calls)

    def add(self, call: Call) -> None:
        """Append a finished call.

        Raises:
            RecordError: it cannot be written; the file keeps its contents.
        """
        line = msgspec.json.encode(call) + b"\n"
        try:
            whole = self._file.write(line) == len(line)
        except OSError as error:
            raise RecordError(f"{self.path} cannot be written: {error.strerror}") from error
        if not whole:
            raise RecordError(f"{self.path} cannot be written: the disk is full")
        self.calls.append(call)
