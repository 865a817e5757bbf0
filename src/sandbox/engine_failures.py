"""Translates the engine's exceptions to sandbox errors, in terms of the program's source. Pure."""

import re
from typing import Final

import pydantic_monty as monty

from .program import PreparedProgram
from .program_output import cut_in_the_middle
from .program_termination import WORKER_DIED
from .sandbox_errors import (
    ProgramFailedError,
    ProgramRefusedError,
    ProgramStoppedError,
    SandboxError,
    WorkerDiedError,
)

PROGRAM_FILE_NAME: Final = "<python-input-1>"
"""The engine's file name for the program; the prelude is number 0."""
TOOL_ERROR: Final = "_csv.Error"
"""The engine's name for ``ToolError``."""
MESSAGE_BYTES: Final = 4 * 1024
"""The length of an exception's message, which a program can make arbitrarily long."""
_LINE_CHARS: Final = 200
_FRAMES: Final = 6
"""The number of innermost frames of a traceback."""
_UNSUPPORTED: Final = "The monty syntax parser does not yet support "
_TIME: Final = "feed time limit exceeded"
_MEMORY: Final = ("memory limit exceeded", "the worker exceeded its memory limit")
"""The limits of the interpreter and of its process, which ends when it exceeds the limit."""
_SUSPENSIONS: Final = re.compile(r"suspension limit \d+ exceeded")


def sandbox_error(
    error: monty.MontyError, prepared: PreparedProgram, *, cpu_s: float, memory_bytes: int
) -> SandboxError:
    """The sandbox error for an error of the engine."""
    if isinstance(error, monty.MontyCrashedError):
        return WorkerDiedError(f"{WORKER_DIED} ({error})")
    raised = error.exception()
    message = str(raised)
    if isinstance(raised, TimeoutError) and message.startswith(_TIME):
        return ProgramStoppedError(
            "cpu", f"The program used more than {cpu_s:g} s of CPU time; let tools do more of the work."
        )
    if isinstance(raised, MemoryError) and message.startswith(_MEMORY):
        return ProgramStoppedError(
            "memory", f"The program used more than {memory_bytes:,} bytes of memory; keep less data at a time."
        )
    if isinstance(raised, RuntimeError) and _SUSPENSIONS.match(message):
        return ProgramStoppedError("calls", "The program made too many requests: sleeps, clocks, names.")
    if isinstance(error, monty.MontySyntaxError) or message.startswith(_UNSUPPORTED):
        return ProgramRefusedError([_refused(error, message, prepared)])
    return ProgramFailedError(_traceback(error, prepared))


def _refused(error: monty.MontyError, message: str, prepared: PreparedProgram) -> str:
    frames = error.traceback() if isinstance(error, monty.MontySyntaxError | monty.MontyRuntimeError) else []
    place = f"line {prepared.line(frames[-1].line)}: " if frames else ""
    if message.startswith(_UNSUPPORTED):
        return f"{place}the sandbox's Python lacks {message.removeprefix(_UNSUPPORTED)}"
    return f"{place}{cut_in_the_middle(message, MESSAGE_BYTES)}"


def _traceback(error: monty.MontyError, prepared: PreparedProgram) -> str:
    """The exception, followed by the program's lines in its traceback, innermost last."""
    if not isinstance(error, monty.MontyRuntimeError):
        return str(error)
    own = [frame for frame in error.traceback() if frame.filename == PROGRAM_FILE_NAME]
    name, colon, message = error.display("type-msg").partition(": ")
    name = "ToolError" if name == TOOL_ERROR else name
    first = cut_in_the_middle(f"{name}{colon}{message}", MESSAGE_BYTES)
    lines = [
        f"  line {prepared.line(frame.line)}{f', in {frame.function_name}' if frame.function_name else ''}: "
        f"{prepared.source(frame.line).strip()[:_LINE_CHARS]}"
        for frame in own[-_FRAMES:]
    ]
    return "\n".join([first, *lines])
