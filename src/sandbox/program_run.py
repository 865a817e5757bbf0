"""One program at work: the engine runs until it needs something from outside, is answered, and runs on."""

import asyncio
from typing import Any, TypeAlias

import pydantic_monty as monty

from .engine_failures import FED_AS
from .inner_calls import Call, InnerCalls
from .plain_json import NotPlainError, plain
from .prelude import PRELUDE
from .program import PreparedProgram, Program
from .program_output import ProgramOutput
from .program_termination import ProgramTermination
from .sandbox_errors import ProgramFailedError, ProgramRefusedError
from .type_check_findings import mistakes_in

_Need: TypeAlias = monty.AsyncFunctionSnapshot | monty.AsyncNameLookupSnapshot | monty.AsyncFutureSnapshot
"""The engine stands still, and wants something from outside."""


class ProgramRun:
    """A run of one program in a session of its own."""

    def __init__(
        self,
        session: monty.AsyncMontySession,
        program: Program,
        prepared: PreparedProgram,
        call: Call,
        output: ProgramOutput,
        ending: ProgramTermination,
    ) -> None:
        self._session = session
        self._program = program
        self._prepared = prepared
        self._call = call
        self._output = output
        self._ending = ending
        # Of each `await` that stands before a call, the last call that was made there.
        self._awaited: dict[int, int] = {}

    async def to_its_end(self, calls: InnerCalls) -> Any:
        """Run it, and return its value as plain JSON. Whatever it still waits for when it ends, ends with it.

        Raises:
            SandboxError: it did not come to its end.
            MontyError: the same, in the engine's words.
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
        """The program's first need of something from outside; the type check, which is before all, found nothing."""
        try:
            snapshot = await self._start(skip_type_check=False)
            while isinstance(snapshot, monty.AsyncFunctionSnapshot) and snapshot.function_name == "import_stubs":
                snapshot = await snapshot.resume_auto()
        except monty.MontyTypingError as error:
            findings = error.display()
            mistakes = await asyncio.to_thread(mistakes_in, findings, self._prepared, self._program.modules)
            if mistakes:
                raise ProgramRefusedError(mistakes) from None
            return await self._start(skip_type_check=True)
        return snapshot

    async def _start(self, *, skip_type_check: bool) -> monty.AsyncSnapshot:
        return await self._session.feed_start(
            self._prepared.text, print_callback=self._output.write, skip_type_check=skip_type_check
        )

    async def _answer(self, snapshot: _Need, calls: InnerCalls) -> monty.AsyncSnapshot:
        if isinstance(snapshot, monty.AsyncFutureSnapshot):
            with self._ending.watch(self._session.worker_pid):
                settled = await calls.settled(self._waited_for(snapshot))
            return await snapshot.resume(settled)
        if isinstance(snapshot, monty.AsyncNameLookupSnapshot):
            return await snapshot.resume()  # there is nothing of this name
        return await (self._system if snapshot.is_os_function else self._function)(snapshot, calls)

    async def _system(self, snapshot: monty.AsyncFunctionSnapshot, calls: InnerCalls) -> monty.AsyncSnapshot:
        """Imports of modules and sleeps; of anything else the engine says that there is none."""
        match snapshot.function_name:
            case "import" | "import_stubs":
                return await snapshot.resume_auto()
            case "system.sleep":
                with self._ending.watch(self._session.worker_pid):
                    await asyncio.sleep(snapshot.args[0])
                return await snapshot.resume({"return_value": None})
            case "system.async_sleep":
                delay_s = snapshot.args[0]
                calls.make(snapshot.call_id, lambda: asyncio.sleep(delay_s), self._bare_line(snapshot))
                return await snapshot.resume({"future": ...})
        return await snapshot.resume_not_handled()

    async def _function(self, snapshot: monty.AsyncFunctionSnapshot, calls: InnerCalls) -> monty.AsyncSnapshot:
        module, _, function = snapshot.function_name.partition(".")
        if module not in self._prepared.modules:  # the engine asks for a name that is called as for a function
            return await snapshot.resume({"exc_type": "NameError", "message": f"name {module!r} is not defined"})
        calls.count_one()
        if snapshot.args:
            told = f"{snapshot.function_name} takes its arguments by name, such as query=…"
            return await snapshot.resume({"exc_type": "TypeError", "message": told})
        try:
            arguments = await asyncio.to_thread(plain, snapshot.kwargs, snapshot.function_name)
        except NotPlainError as error:
            return await snapshot.resume({"exc_type": "TypeError", "message": str(error)})
        calls.make(snapshot.call_id, lambda: self._call(module, function, arguments), self._bare_line(snapshot))
        return await snapshot.resume({"future": ...})

    def _bare_line(self, snapshot: monty.AsyncFunctionSnapshot) -> int | None:
        """The line of a call that has no ``await`` before it; None of one that has."""
        place = snapshot.position.start
        awaited = self._prepared.await_before(place) if snapshot.position.filename == FED_AS else None
        if awaited is None:
            return self._prepared.line_at(place)
        self._awaited[awaited] = snapshot.call_id
        return None

    def _waited_for(self, snapshot: monty.AsyncFutureSnapshot) -> list[int]:
        """What is to be begun now. Where the program waits for one call that stands behind the ``await``, that alone;
        else all that it has written, of which the engine does not tell what is waited for."""
        alone = self._awaited.get(snapshot.position.start) if snapshot.position.filename == FED_AS else None
        return [alone] if alone in snapshot.pending_call_ids else snapshot.pending_call_ids

    async def _value(self, complete: monty.MontyComplete, calls: InnerCalls) -> Any:
        if calls.never_awaited:
            lines = ", ".join(map(str, calls.never_awaited))
            raise ProgramFailedError(
                f"A call in line {lines} was not awaited, and so not made; write `await` before it."
            )
        try:
            return await asyncio.to_thread(lambda: plain(complete.output, "the returned value"))
        except NotPlainError as error:
            raise ProgramFailedError(f"{error}.") from None
