"""The sandbox of code mode: runs one program that calls tools, with nothing else in its reach.

Who calls it: ``execute_code``, which says what may be called and does the calls. What it knows: an engine, and bounds.
What it must never know: tools, calls, sessions, permits.
"""

from .program import MAX_CODE_BYTES, Program, ProgramModule
from .program_output import ProgramOutput
from .sandbox import Sandbox
from .sandbox_engine import SandboxLimits
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
