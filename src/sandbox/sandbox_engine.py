"""The engine, pydantic-monty: a pool of worker processes, each of which runs one program at a time.

A program that waits for a tool keeps its worker, so the pool has one worker per concurrent program, not per CPU."""

import asyncio
import math
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pydantic_monty as monty
from pydantic_monty._binary import find_monty_binary

from .engine_failures import sandbox_error
from .inner_calls import Call, InnerCalls
from .prelude import DECLARATIONS
from .program import PreparedProgram, Program, SandboxLimits, prepare
from .program_output import ProgramOutput
from .program_run import ProgramRun
from .program_termination import ProgramTermination
from .sandbox_errors import SandboxBusyError
from .worker_launcher import launcher_for

_PROGRAMS_PER_WORKER: Final = 200
"""After this many programs a worker process is replaced, so that leaked memory does not accumulate."""
_WORKER_BYTES: Final = 2 * 1024**3
"""The address space of a worker in addition to twice its program's memory: the type checker reserves much and uses
little."""
_SUSPENSIONS_PER_CALL: Final = 4
_SUSPENSIONS: Final = 5_000
"""The number of requests other than tool calls: sleeps, imports, undefined names."""
_GRACE_S: Final = 5.0
"""An interpreter that does not stop this long after its CPU time is killed; busy machines need that time."""
_PAUSE_S: Final = 0.1
"""A pause before the interpreter ends: right after the pool was closed, it sometimes aborts (4 of 20; with 0.05 s,
none)."""


class SandboxEngine:
    """A pool of workers. Call ``open`` before the first program, and ``close`` at the end."""

    def __init__(self, programs: int, limits: SandboxLimits) -> None:
        """Blocks for some milliseconds. ``limits`` also determine the limits of the worker processes."""
        self._programs = programs
        self._launcher = launcher_for(
            find_monty_binary(),
            memory_bytes=_WORKER_BYTES + 2 * limits.memory_bytes,
            cpu_s=math.ceil(2 * _PROGRAMS_PER_WORKER * (limits.cpu_s + _GRACE_S)),
        )
        self._pool = monty.AsyncMonty(
            binary_path=self._launcher.path if self._launcher else None,
            max_processes=programs,
            max_checkouts_per_worker=_PROGRAMS_PER_WORKER,
            feed_duration_limit_grace=_GRACE_S,
        )

    async def open(self) -> None:
        try:
            await self._pool.__aenter__()
        except BaseException:
            self._close_launcher()
            raise

    async def close(self) -> None:
        await self._pool.__aexit__(None, None, None)
        self._close_launcher()
        await asyncio.sleep(_PAUSE_S)

    def _close_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.close()

    async def run(
        self, program: Program, limits: SandboxLimits, call: Call, output: ProgramOutput, timeout_s: float
    ) -> Any:
        """Implements ``Sandbox.run``."""
        prepared = prepare(program)
        termination = ProgramTermination()
        output.on_limit = termination.on_output_limit
        began = False
        try:
            async with termination.within(timeout_s), self._session(prepared, limits) as session:
                began = True
                run = ProgramRun(session, program, prepared, call, output, termination)
                return await run.run(InnerCalls(limits.calls))
        except TimeoutError:
            if not began:
                message = f"{self._programs} programs are running, and none ended within {timeout_s:.3g} s."
                raise SandboxBusyError(message) from None
            raise termination.reason from None
        except monty.MontyError as error:
            raise sandbox_error(error, prepared, cpu_s=limits.cpu_s, memory_bytes=limits.memory_bytes) from None

    def _session(
        self, prepared: PreparedProgram, limits: SandboxLimits
    ) -> AbstractAsyncContextManager[monty.AsyncMontySession]:
        return self._pool.checkout(
            limits={
                "max_feed_duration_secs": limits.cpu_s,
                "max_memory": limits.memory_bytes,
                "max_suspensions": _SUSPENSIONS + _SUSPENSIONS_PER_CALL * limits.calls,
            },
            type_check=True,
            type_check_format="json",
            type_check_stubs=DECLARATIONS,
            os_policy={"sleep": "system", "sleep_system_max": float("inf")},
            external_modules={
                name: monty.ExternalModule(
                    dict.fromkeys(module.functions, _no_call),
                    stubs=module.stub(sorted(module.functions & prepared.words)),
                )
                for name, module in prepared.modules.items()
            },
        )


def _no_call() -> None:
    """A placeholder for each function: ``ProgramRun`` makes the call."""
