"""The sandbox, whatever its engine: loaded when the first program comes, and closed with the daemon."""

import asyncio
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from .program import Program
from .program_output import ProgramOutput
from .sandbox_engine import SandboxLimits
from .sandbox_errors import SandboxBusyError, SandboxMissingError

if TYPE_CHECKING:  # it needs the engine, which need not be installed
    from .inner_calls import Call
    from .sandbox_engine import SandboxEngine


def share_of_one(programs: int) -> int:
    """How many of all workers one owner of programs may hold: programs wait, and others' must not wait for them."""
    return max(1, programs * 3 // 4)


class Sandbox:
    """Runs programs, so many at once; ``limits`` may be replaced at any time, for those that come then."""

    def __init__(self, limits: SandboxLimits, *, programs: int) -> None:
        self.limits = limits
        self._programs = programs
        self._opening = asyncio.Lock()
        # Of those who have programs that run or wait.
        self._lines: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._engine: SandboxEngine | None = None

    def __repr__(self) -> str:
        return f"<Sandbox programs={self._programs} {'open' if self._engine else 'not loaded'}>"

    async def run(
        self, program: Program, call: "Call", output: ProgramOutput, *, timeout_s: float, owner: str = ""
    ) -> Any:
        """Run a program and return its value as plain JSON. It has ``timeout_s`` seconds, its waiting included.

        All programs of one ``owner`` together hold three quarters of the workers at most. ``call`` does what it calls;
        when the program has ended, for whatever cause, none of these is going on. What it prints is in ``output``, also
        where it did not come to its end.

        Raises:
            SandboxError: it did not come to its end; errors.py has the cases.
        """
        engine = await self._opened()
        share = share_of_one(self._programs)
        line = self._lines.setdefault(owner, asyncio.Semaphore(share))
        waited_s = 0.0
        if line.locked():
            began = time.monotonic()
            try:
                async with asyncio.timeout(timeout_s):
                    await line.acquire()
            except TimeoutError:
                told = f"{share} programs of yours run already, and none ended within {timeout_s:.3g} s."
                raise SandboxBusyError(told) from None
            waited_s = time.monotonic() - began
        else:
            await line.acquire()
        try:
            return await engine.run(program, self.limits, call, output, timeout_s - waited_s)
        finally:
            line.release()

    async def close(self) -> None:
        """End all workers."""
        if self._engine is not None:
            await self._engine.close()

    async def _opened(self) -> "SandboxEngine":
        async with self._opening:
            if self._engine is None:
                try:
                    # In a thread: it is a library of 10 MB, and calls go on meanwhile.
                    module = await asyncio.to_thread(import_module, f"{__package__}.sandbox_engine")
                except ModuleNotFoundError as error:
                    if error.name != "pydantic_monty":
                        raise
                    raise SandboxMissingError from None
                engine: SandboxEngine = module.SandboxEngine(self._programs)
                try:
                    await engine.open()
                except RuntimeError as error:  # it is installed in part, or the system has no room for a process
                    raise SandboxMissingError(str(error)) from None
                self._engine = engine
        return self._engine
