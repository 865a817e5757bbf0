"""The reasons why a program did not complete, all below ``SandboxError``::

    SandboxError
    ├── SandboxMissingError   the engine is not installed, or does not start
    ├── SandboxBusyError      no worker became free within the program's timeout
    ├── WorkerDiedError       the worker process ended unexpectedly
    ├── ProgramRefusedError   the program was rejected before it ran
    ├── ProgramFailedError    it raised an exception, or returned a value that is not JSON
    └── ProgramStoppedError   it exceeded a limit

Messages are for the program's author. ``ToolFailedError`` is not among these: programs can catch it.
"""

from collections.abc import Sequence
from typing import Literal

from ..version import install_extra

Bound = Literal["time", "cpu", "memory", "output", "calls", "code"]


class SandboxError(Exception):
    """The program did not complete."""


class SandboxMissingError(SandboxError):
    """Code mode needs the package pydantic-monty, which is not installed or does not start."""

    def __init__(self, reason: str | None = None) -> None:
        missing = f"Code mode needs the package pydantic-monty; {install_extra('code')}"
        super().__init__(f"The sandbox's engine does not start: {reason}" if reason else missing)


class SandboxBusyError(SandboxError):
    """No worker became free within the program's timeout; nothing ran."""


class WorkerDiedError(SandboxError):
    """The worker process ended unexpectedly, and the program with it."""


class ProgramRefusedError(SandboxError):
    """The program was rejected before it ran; ``reasons`` lists the reasons with their lines."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(reasons))


class ProgramFailedError(SandboxError):
    """The program raised an exception that it did not catch, or returned a value that is not JSON."""


class ProgramStoppedError(SandboxError):
    """The program exceeded a limit; its ``except`` clauses do not see this."""

    def __init__(self, bound: Bound, message: str) -> None:
        self.bound: Bound = bound
        super().__init__(message)


class ToolFailedError(Exception):
    """A call of the program failed: it sees a ``ToolError`` with this ``code`` and ``message``."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")
