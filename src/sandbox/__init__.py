"""The sandbox of code mode: runs one program that calls tools, with nothing else in its reach.

Who calls it: ``execute_code``, which says what may be called and does the calls. What it knows: an engine, and bounds.
What it must never know: tools, calls, sessions, permits.
"""

from .errors import (
    ProgramFailedError,
    ProgramRefusedError,
    ProgramStoppedError,
    SandboxBusyError,
    SandboxError,
    SandboxMissingError,
    ToolFailedError,
    WorkerDiedError,
)
from .limits import Limits
from .output import Output
from .program import MAX_CODE_BYTES, Module, Program
from .sandbox import Sandbox

__all__ = [
    "MAX_CODE_BYTES",
    "Limits",
    "Module",
    "Output",
    "Program",
    "ProgramFailedError",
    "ProgramRefusedError",
    "ProgramStoppedError",
    "Sandbox",
    "SandboxBusyError",
    "SandboxError",
    "SandboxMissingError",
    "ToolFailedError",
    "WorkerDiedError",
]
