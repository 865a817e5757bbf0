"""The sandbox of code mode: runs one program, which can only call tools.

Used by ``execute_code``, which defines the functions and makes the calls. Knows the engine and its limits. Must not
know
tools, calls, sessions or permits.
"""

from .program import MAX_CODE_BYTES, Program, ProgramModule, SandboxLimits
from .program_output import ProgramOutput
from .sandbox import Sandbox
from .sandbox_errors import (
    ProgramFailedError,
    ProgramRefusedError,
    ProgramStoppedError,
    SandboxBusyError,
    SandboxError,
    SandboxMissingError,
    ToolFailedError,
    WorkerDiedError,
)

__all__ = [
    "MAX_CODE_BYTES",
    "Program",
    "ProgramFailedError",
    "ProgramModule",
    "ProgramOutput",
    "ProgramRefusedError",
    "ProgramStoppedError",
    "Sandbox",
    "SandboxBusyError",
    "SandboxError",
    "SandboxLimits",
    "SandboxMissingError",
    "ToolFailedError",
    "WorkerDiedError",
]
