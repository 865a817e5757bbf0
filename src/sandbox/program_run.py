"""Runs one program: the engine runs until it needs something from outside; it then gets this and continues."""

import asyncio
from typing import Any, TypeAlias

import pydantic_monty as monty

from .engine_failures import PROGRAM_FILE_NAME
from .inner_calls import Call, InnerCalls
from .plain_json import NotJsonError, plain
from .prelude import PRELUDE
from .program import PreparedProgram, Program
from .program_output import ProgramOutput
from .program_termination import ProgramTermination
from .sandbox_errors import ProgramFailedError, ProgramRefusedError
from .type_check_findings import find_type_errors

_Need: TypeAlias = monty.AsyncFunctionSnapshot | monty.AsyncNameLookupSnapshot | monty.AsyncFutureSnapshot
"""The engine is suspended and needs something from outside."""


class ProgramRun:
    """One program in its own session of the engine."""

    def __init__(
        self,
        session: monty.AsyncMontySession,
        program: Program,
        prepared: PreparedProgram,
        call: Call,
        output: ProgramOutput,
        termination: ProgramTermination,
    ) -> None:
        self._session = session
        self._program = program
        self._prepared = prepared
        self._call = call
        self._output = output
        self._termination = termination
        # For each `await` before a call, the latest call made there.
        self._awaited: dict[int, int] = {}

    async def run(self, calls: InnerCalls) -> Any:
        """Run the program, and return its value as plain JSON. Pending calls end with the program.

        Raises:
            SandboxError: it failed or was stopped.
            MontyError: the same, as an error of the engine.
        """
        try:
            await self._session.feed_run(PRELUDE, skip_type_check=True)
            return await self._driven(calls)
        finally:
            await calls.end()

    async def _driven(self, calls: InnerCalls) -> Any:
        snapshot = await self._checked()
        while not isinstance(snapshot, monty.MontyComplete):
            snapshot = await self._answer(snapshot, calls)
        return await self._value(snapshot, calls)

    async def _checked(self) -> monty.AsyncSnapshot:
        """Start the program after the type check; returns its first suspension."""
        try:
            snapshot = await self._start(skip_type_check=False)
            while isinstance(snapshot, monty.AsyncFunctionSnapshot) and snapshot.function_name == "import_stubs":
                snapshot = await snapshot.resume_auto()
        except monty.MontyTypingError as error:
            findings = error.display()
            type_errors = await asyncio.to_thread(find_type_errors, findings, self._prepared, self._program.modules)
            if type_errors:
                raise ProgramRefusedError(type_errors) from None
            return await self._start(skip_type_check=True)
        return snapshot

    async def _start(self, *, skip_type_check: bool) -> monty.AsyncSnapshot:
        return await self._session.feed_start(
            self._prepared.text, print_callback=self._output.write, skip_type_check=skip_type_check
        )

    async def _answer(self, snapshot: _Need, calls: InnerCalls) -> monty.AsyncSnapshot:
        if isinstance(snapshot, monty.AsyncFutureSnapshot):
            with self._termination.watch(self._session.worker_pid):
                settled = await calls.settled(self._waited_for(snapshot))
            return await snapshot.resume(settled)
        if isinstance(snapshot, monty.AsyncNameLookupSnapshot):
            return await snapshot.resume()  # the name is not defined
        return await (self._system if snapshot.is_os_function else self._function)(snapshot, calls)

    async def _system(self, snapshot: monty.AsyncFunctionSnapshot, calls: InnerCalls) -> monty.AsyncSnapshot:
        """Imports and sleeps; other functions do not exist."""
        match snapshot.function_name:
            case "import" | "import_stubs":
                return await snapshot.resume_auto()
            case "system.sleep":
                with self._termination.watch(self._session.worker_pid):
                    await asyncio.sleep(snapshot.args[0])
                return await snapshot.resume({"return_value": None})
            case "system.async_sleep":
                delay_s = snapshot.args[0]
                calls.add(snapshot.call_id, lambda: asyncio.sleep(delay_s), self._bare_line(snapshot))
                return await snapshot.resume({"future": ...})
        return await snapshot.resume_not_handled()

    async def _function(self, snapshot: monty.AsyncFunctionSnapshot, calls: InnerCalls) -> monty.AsyncSnapshot:
        module, _, function = snapshot.function_name.partition(".")
        if module not in self._prepared.modules:  # the engine treats a call of an unknown name as a function call
            return await snapshot.resume({"exc_type": "NameError", "message": f"name {module!r} is not defined"})
        calls.count_one()
        if snapshot.args:
            message = f"{snapshot.function_name} takes its arguments by name, such as query=…"
            return await snapshot.resume({"exc_type": "TypeError", "message": message})
        try:
            arguments = await asyncio.to_thread(plain, snapshot.kwargs, snapshot.function_name)
        except NotJsonError as error:
            return await snapshot.resume({"exc_type": "TypeError", "message": str(error)})
        calls.add(snapshot.call_id, lambda: self._call(module, function, arguments), self._bare_line(snapshot))
        return await snapshot.resume({"future": ...})

    def _bare_line(self, snapshot: monty.AsyncFunctionSnapshot) -> int | None:
        """The line of a call without an ``await`` before it; None if the call has an ``await``."""
        place = snapshot.position.start
        awaited = self._prepared.await_before(place) if snapshot.position.filename == PROGRAM_FILE_NAME else None
        if awaited is None:
            return self._prepared.line_at(place)
        self._awaited[awaited] = snapshot.call_id
        return None

    def _waited_for(self, snapshot: monty.AsyncFutureSnapshot) -> list[int]:
        """The calls to start now: only the call after the ``await`` if the program waits for one, else all pending
        calls, since the engine does not report which of them are awaited."""
        alone = self._awaited.get(snapshot.position.start) if snapshot.position.filename == PROGRAM_FILE_NAME else None
        return [alone] if alone in snapshot.pending_call_ids else snapshot.pending_call_ids

    async def _value(self, complete: monty.MontyComplete, calls: InnerCalls) -> Any:
        if calls.never_awaited:
            lines = ", ".join(map(str, calls.never_awaited))
            raise ProgramFailedError(
                f"A call in line {lines} was not awaited and therefore not made; write `await` before it."
            )
        try:
            return await asyncio.to_thread(lambda: plain(complete.output, "the returned value"))
        except NotJsonError as error:
            raise ProgramFailedError(f"{error}.") from None
