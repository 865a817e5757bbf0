"""A record while it runs: a file of JSON lines, the run first and then each call as it ends.

A run that is cut off, by whatever, leaves it behind; what stands in it can be made a record of and continued.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from .record import Call, Record, RecordError


class Draft:
    """The file, open for more calls. Each is handed to the operating system at once, so that the death of this process
    takes none."""

    def __init__(self, path: Path, run: Record, calls: list[Call]) -> None:
        """Use ``begin`` or ``reopen``."""
        self.path = path
        self.run = run
        self.calls = calls
        """Those that stand in the file, in the order in which they ended."""
        self.segment = max((call.segment for call in calls), default=0) + 1
        """That of the calls that are added."""
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    @classmethod
    def begin(cls, path: Path, run: Record) -> Self:
        """Make the file.

        Raises:
            RecordError: it is there already, or cannot be written.
        """
        try:
            with path.open("xb") as file:
                file.write(msgspec.json.encode(run) + b"\n")
        except FileExistsError as error:
            raise RecordError(
                f"{path} is left from a run that was cut off; go on with --continue {path}, or remove it"
            ) from error
        except OSError as error:
            raise RecordError(f"{path} cannot be written: {error.strerror}") from error
        return cls(path, run, [])

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Go on with what a run left behind. A last line that was cut off in the middle is taken away.

        Raises:
            RecordError: the file cannot be read, or is no draft.
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
            raise RecordError(f"{path} is no draft of a baseline record: {error}") from error
        if len(whole) < len(content):
            with path.open("r+b") as file:
                file.truncate(len(whole))
        return cls(path, run, calls)

    def add(self, call: Call) -> None:
        """Append a call that ended.

        Raises:
            RecordError: it cannot be written; what stands in the file so far stays.
        """
        line = msgspec.json.encode(call) + b"\n"
        try:
            whole = self._file.write(line) == len(line)
        except OSError as error:
            raise RecordError(f"{self.path} cannot be written: {error.strerror}") from error
        if not whole:
            raise RecordError(f"{self.path} cannot be written: the disk is full")
        self.calls.append(call)
