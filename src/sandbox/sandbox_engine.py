"""The engine, pydantic-monty: a pool of worker processes, each of which runs one program at a time.

A program that waits for a tool keeps its worker, so there are as many as programs may run at once, not as CPUs."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

import pydantic_monty as monty

from .engine_failures import why
from .inner_calls import Call, InnerCalls
from .prelude import DECLARATIONS
from .program import PreparedProgram, Program, prepare
from .program_output import ProgramOutput
from .program_run import ProgramRun
from .program_termination import ProgramTermination
from .sandbox_errors import SandboxBusyError


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Beside its time, which each call names; all settable (docs/limits.md)."""

    cpu_s: float
    """How long the interpreter itself works; what it waits for does not count."""
    memory_bytes: int
    calls: int
    """Of tools, in all."""


_PROGRAMS_PER_WORKER: Final = 200
"""Then another process takes its place, so that what one keeps back does not add up."""
_SUSPENSIONS_PER_CALL: Final = 4
_SUSPENSIONS: Final = 5_000
"""How often a program may ask for what is no tool: sleeps, imports, names that are not there."""
_GRACE_S: Final = 5.0
"""An interpreter that does not end itself this long after its CPU time is killed; a busy machine is given the time."""
_PAUSE_S: Final = 0.1
"""An interpreter that ends right after the pool was closed aborts at times (4 of 20, of which 0.05 s left none)."""


class SandboxEngine:
    """A pool of workers. ``open`` it before, and ``close`` it after."""

    def __init__(self, programs: int) -> None:
        self._programs = programs
        self._pool = monty.AsyncMonty(
            max_processes=programs,
            max_checkouts_per_worker=_PROGRAMS_PER_WORKER,
            feed_duration_limit_grace=_GRACE_S,
        )

    async def open(self) -> None:
        await self._pool.__aenter__()

    async def close(self) -> None:
        await self._pool.__aexit__(None, None, None)
        await asyncio.sleep(_PAUSE_S)

    async def run(
        self, program: Program, limits: SandboxLimits, call: Call, output: ProgramOutput, timeout_s: float
    ) -> Any:
        """``Sandbox.run``."""
        prepared = prepare(program)
        ending = ProgramTermination()
        output.on_flood = ending.for_flood
        began = False
        try:
            async with ending.within(timeout_s), self._session(prepared, limits) as session:
                began = True
                run = ProgramRun(session, program, prepared, call, output, ending)
                return await run.to_its_end(InnerCalls(limits.calls))
        except TimeoutError:
            if not began:
                told = f"{self._programs} programs run already, and none ended within {timeout_s:.3g} s."
                raise SandboxBusyError(told) from None
            raise ending.reason from None
        except monty.MontyError as error:
            raise why(error, prepared, cpu_s=limits.cpu_s, memory_bytes=limits.memory_bytes) from None

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
    """Stands for each function: what it does is done where the engine asks for it (``run``)."""
