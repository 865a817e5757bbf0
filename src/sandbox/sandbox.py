"""The sandbox: loads its engine with the first program, and closes it with the daemon."""

import asyncio
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from .program import Program, SandboxLimits
from .program_output import ProgramOutput
from .sandbox_errors import SandboxBusyError, SandboxMissingError

if TYPE_CHECKING:  # these need the engine, which is optional
    from .inner_calls import Call
    from .sandbox_engine import SandboxEngine


def share_of_one(programs: int) -> int:
    """The number of workers that one owner may use at once, so that other owners' programs do not wait for them."""
    return max(1, programs * 3 // 4)


class Sandbox:
    """Runs programs with bounded concurrency. ``limits`` can be replaced at any time, for new programs."""

    def __init__(self, limits: SandboxLimits, *, programs: int) -> None:
        self.limits = limits
        self._programs = programs
        self._opening = asyncio.Lock()
        # Owners with programs that run or wait.
        self._owner_slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._engine: SandboxEngine | None = None

    def __repr__(self) -> str:
        return f"<Sandbox programs={self._programs} {'open' if self._engine else 'not loaded'}>"

    async def run(
        self, program: Program, call: "Call", output: ProgramOutput, *, timeout_s: float, owner: str = ""
    ) -> Any:
        """Run a program and return its value as plain JSON. ``timeout_s`` includes waiting for a worker.

        All programs of one ``owner`` together use at most three quarters of the workers. ``call`` makes the program's
        calls; none is running after this returns. ``output`` collects what the program prints, even if it fails.

        Raises:
            SandboxError: it failed, was stopped or did not run; sandbox_errors.py lists the cases.
        """
        engine = await self._opened()
        share = share_of_one(self._programs)
        owner_slots = self._owner_slots.setdefault(owner, asyncio.Semaphore(share))
        waited_s = 0.0
        if owner_slots.locked():
            began = time.monotonic()
            try:
                async with asyncio.timeout(timeout_s):
                    await owner_slots.acquire()
            except TimeoutError:
                message = f"{share} of your programs are running, and none ended within {timeout_s:.3g} s."
                raise SandboxBusyError(message) from None
            waited_s = time.monotonic() - began
        else:
            await owner_slots.acquire()
        try:
            return await engine.run(program, self.limits, call, output, timeout_s - waited_s)
        finally:
            owner_slots.release()

    async def close(self) -> None:
        """End all workers."""
        if self._engine is not None:
            await self._engine.close()

    async def _opened(self) -> "SandboxEngine":
        async with self._opening:
            if self._engine is None:
                try:
                    # In a thread: loading the 10 MB library must not block the event loop.
                    module = await asyncio.to_thread(import_module, f"{__package__}.sandbox_engine")
                except ModuleNotFoundError as error:
                    if error.name != "pydantic_monty":
                        raise
                    raise SandboxMissingError from None
                try:
                    engine: SandboxEngine = await asyncio.to_thread(module.SandboxEngine, self._programs, self.limits)
                    await engine.open()
                except (RuntimeError, OSError) as error:  # it is not installed completely, or no process can be started
                    raise SandboxMissingError(str(error)) from None
                self._engine = engine
        return self._engine
