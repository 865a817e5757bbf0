"""Why a program did not come to its end, all below ``SandboxError``::

    SandboxError
    ├── SandboxMissingError   the engine is not installed, or does not start
    ├── SandboxBusyError      no worker became free within the program's time
    ├── WorkerDiedError       the process that ran it is gone
    ├── ProgramRefusedError   something is wrong with it that was seen before any of it ran
    ├── ProgramFailedError    it raised an exception, or returned what is no JSON
    └── ProgramStoppedError   it came to one of its bounds

A message is for whoever wrote the program. ``ToolFailedError`` is no such error: it is what a program can catch.
"""

from collections.abc import Sequence
from typing import Literal

Bound = Literal["time", "cpu", "memory", "output", "calls", "code"]


class SandboxError(Exception):
    """The program did not come to its end."""


class SandboxMissingError(SandboxError):
    """Code mode needs the package pydantic-monty; install it with: pip install "toold[code]"."""

    def __init__(self, reason: str | None = None) -> None:
        told = f"The sandbox's engine does not start: {reason}" if reason else (type(self).__doc__ or "")
        super().__init__(told.removesuffix("."))


class SandboxBusyError(SandboxError):
    """No worker became free within the program's time; nothing of it ran."""


class WorkerDiedError(SandboxError):
    """The process that ran the program is gone, and the program with it."""


class ProgramRefusedError(SandboxError):
    """Something is wrong with the program that was seen before any of it ran; ``mistakes`` has each, with its line."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("; ".join(mistakes))


class ProgramFailedError(SandboxError):
    """The program raised an exception that it did not catch, or returned what is no JSON."""


class ProgramStoppedError(SandboxError):
    """The program came to one of its bounds, which no ``except`` of it sees."""

    def __init__(self, bound: Bound, message: str) -> None:
        self.bound: Bound = bound
        super().__init__(message)


class ToolFailedError(Exception):
    """A call that a program made failed: to the program it is a ``ToolError`` with this ``code`` and ``message``."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")
