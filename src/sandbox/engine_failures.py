"""What the engine raises → why the program did not come to its end, in the words of whoever wrote it. Pure."""

import re
from typing import Final

import pydantic_monty as monty

from .program import PreparedProgram
from .program_output import cut_in_the_middle
from .program_termination import GONE
from .sandbox_errors import (
    ProgramFailedError,
    ProgramRefusedError,
    ProgramStoppedError,
    SandboxError,
    WorkerDiedError,
)

FED_AS: Final = "<python-input-1>"
"""What the engine calls the program; what was run before it is number 0."""
TOOL_ERROR: Final = "_csv.Error"
"""What ``ToolError`` is to the engine."""
MESSAGE_BYTES: Final = 4 * 1024
"""Of what an exception says; a program can make it as long as it likes."""
_LINE_CHARS: Final = 200
_FRAMES: Final = 6
"""Of a traceback, the innermost."""
_UNSUPPORTED: Final = "The monty syntax parser does not yet support "
_TIME: Final = "feed time limit exceeded"
_MEMORY: Final = ("memory limit exceeded", "the worker exceeded its memory limit")
"""The interpreter's own bound, and that of its process, which ends with it."""
_SUSPENSIONS: Final = re.compile(r"suspension limit \d+ exceeded")


def why(error: monty.MontyError, prepared: PreparedProgram, *, cpu_s: float, memory_bytes: int) -> SandboxError:
    """The error that the engine's is."""
    if isinstance(error, monty.MontyCrashedError):
        return WorkerDiedError(f"{GONE} ({error})")
    raised = error.exception()
    told = str(raised)
    if isinstance(raised, TimeoutError) and told.startswith(_TIME):
        return ProgramStoppedError(
            "cpu", f"The program worked for more than {cpu_s:g} s itself; let tools do more of it."
        )
    if isinstance(raised, MemoryError) and told.startswith(_MEMORY):
        return ProgramStoppedError(
            "memory", f"The program used more than {memory_bytes:,} bytes of memory; keep less at a time."
        )
    if isinstance(raised, RuntimeError) and _SUSPENSIONS.match(told):
        return ProgramStoppedError("calls", "The program asked for too much from outside: sleeps, clocks, names.")
    if isinstance(error, monty.MontySyntaxError) or told.startswith(_UNSUPPORTED):
        return ProgramRefusedError([_refused(error, told, prepared)])
    return ProgramFailedError(_traceback(error, prepared))


def _refused(error: monty.MontyError, told: str, prepared: PreparedProgram) -> str:
    frames = error.traceback() if isinstance(error, monty.MontySyntaxError | monty.MontyRuntimeError) else []
    place = f"line {prepared.line(frames[-1].line)}: " if frames else ""
    if told.startswith(_UNSUPPORTED):
        return f"{place}the sandbox's Python does not have {told.removeprefix(_UNSUPPORTED)}"
    return f"{place}{cut_in_the_middle(told, MESSAGE_BYTES)}"


def _traceback(error: monty.MontyError, prepared: PreparedProgram) -> str:
    """The exception, and below it the lines of the program that it came through, the innermost last."""
    if not isinstance(error, monty.MontyRuntimeError):
        return str(error)
    own = [frame for frame in error.traceback() if frame.filename == FED_AS]
    name, colon, message = error.display("type-msg").partition(": ")
    name = "ToolError" if name == TOOL_ERROR else name
    first = cut_in_the_middle(f"{name}{colon}{message}", MESSAGE_BYTES)
    lines = [
        f"  line {prepared.line(frame.line)}{f', in {frame.function_name}' if frame.function_name else ''}: "
        f"{prepared.source(frame.line).strip()[:_LINE_CHARS]}"
        for frame in own[-_FRAMES:]
    ]
    return "\n".join([first, *lines])
