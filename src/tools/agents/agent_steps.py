"""The steps of a custom agent's code: names them, checks that a resumed run repeats them, and stops the code.

If a run pauses, or does not repeat its steps, the code gets no exception, because it could catch it. Instead, the step
never returns, and the run ends the code.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from hashlib import sha256
from typing import Final, NoReturn, TypeVar

import msgspec

from ...protocol.arguments_digest import is_digest_of
from ...protocol.error_codes import CallError, ToolExecutionError
from ...protocol.input_request import CallPausedError
from ...protocol.tool_call import Json
from ..orchestration_context import EarlierSteps
from .agent_pause import joined
from .agent_run import ConversationSummary
from .run_totals import RunTotals

T = TypeVar("T")

MAX_STEPS: Final = 10_000
"""The maximum number of steps of one run, so that endless code does not fill the journal."""
_SETTLE: Final = 5
"""The iterations of the event loop after which a paused run counts as idle. Code that has just got a result may still
make its next step.
"""


def request_id(step: str, content: Json) -> str:
    """The id of a request to a person. It depends on the request's content, so that a decision is never used for
    another request.
    """
    return f"{step}-{sha256(msgspec.json.encode(content, order='sorted')).hexdigest()[:8]}"


class AgentSteps:
    """The steps of one run of a custom agent's code."""

    def __init__(self, agent: str, earlier: EarlierSteps, package: str) -> None:
        """``package`` is the code's package, for the error of a run that does not repeat its steps."""
        self._agent = agent
        self._package = package
        self._earlier: dict[str, tuple[str, bytes]] = {
            name: call for name, call in earlier.children.items() if name != "snapshot" and "#" not in name
        }
        # Without requests for credentials, whose ids have a colon: a run that finds the credential makes no request.
        self._decided = {name.rpartition("-")[0]: name for name in earlier.decided if ":" not in name}
        self._totals: dict[str, RunTotals] = {}
        self._active = 0
        self._idle = asyncio.Event()
        self._stopped = asyncio.Event()
        self._pauses: list[CallPausedError] = []
        self._failure: CallError | None = None
        self.of_conversation: ConversationSummary | None = None
        """The summary of the conversation, if a role made one."""
        self._closed = False  # the code has ended and can make no more steps

    @property
    def totals(self) -> RunTotals:
        """The turns and calls of all steps, in the order in which they began."""
        return RunTotals().with_later(self._totals.values())

    def report(self, step: str, totals: RunTotals) -> None:
        """Records the turns and calls of a step that has ended."""
        self._totals[step] = totals

    async def begin(self, step: str) -> None:
        """Begins a step.

        Raises:
            asyncio.CancelledError: the run has ended, or is ending.
        """
        if self._closed:
            raise asyncio.CancelledError
        self._totals[step] = RunTotals()
        if len(self._totals) > MAX_STEPS:
            message = f"{self._agent} was stopped after {MAX_STEPS:,} steps; its code may never end."
            await self.fail(ToolExecutionError.content_free(message, executed="yes"))
        if self._failure is not None:
            await self._never()

    async def check_call(self, step: str, tool: str, arguments: Mapping[str, Json]) -> None:
        """Stops the run if, before it was resumed, this step was a different call, or not a call."""
        decided = self._decided.pop(step, None)
        earlier = self._earlier.pop(step, None)
        if decided is not None and earlier is None:
            await self._differs(f"step {step} asked a person, and now calls {tool}")
        if earlier is not None and earlier[0] != tool:
            await self._differs(f"step {step} called {earlier[0]}, and now calls {tool}")
        if earlier is not None and not is_digest_of(earlier[1], dict(arguments)):
            await self._differs(f"step {step} called {tool} with other arguments")

    async def check_request(self, step: str, request: str) -> None:
        """Stops the run if, before it was resumed, this step was a call, or another request to a person."""
        if step in self._earlier and step not in self._decided:
            await self._differs(f"step {step} called {self._earlier[step][0]}, and now asks a person")
        decided = self._decided.pop(step, request)
        if decided != request:
            await self._differs(f"step {step} asked a person something else")

    def unrepeated(self) -> CallError | None:
        """The error if the code ended without a step that it made before the run was resumed; None otherwise."""
        missing = sorted({*self._earlier, *self._decided})
        return self._difference(f"it ended without step {missing[0]}, which it made before") if missing else None

    async def _differs(self, what: str) -> None:
        await self.fail(self._difference(what))

    def _difference(self, what: str) -> CallError:
        message = (
            f"The code of {self._agent} ({self._package}) did not repeat its steps after a pause or a restart: {what}"
        )
        advice = "It must depend only on its input and its steps (docs/custom-agents.md). Start the run again."
        return ToolExecutionError.content_free(f"{message}. {advice}", executed="maybe")

    async def fail(self, error: CallError) -> NoReturn:
        """Ends the run with this error."""
        self._failure = self._failure or error
        self._stopped.set()
        await self._never()

    async def guarded(self, work: Awaitable[T]) -> T:
        """The result of a step's work. If the work pauses, the run pauses once the other running steps have ended."""
        self._active += 1
        self._idle.clear()
        try:
            return await work
        except CallPausedError as pause:
            self._pauses.append(pause)
            self._stopped.set()
        finally:
            self._active -= 1
            if not self._active:
                self._idle.set()
        return await self._never()

    async def _never(self) -> NoReturn:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing sets the future")

    async def run(self, code: "asyncio.Task[T]") -> T:
        """Runs the code and returns its result. Passes on exceptions of the code.

        Raises:
            CallPausedError: steps wait for a person.
            CallError: the code made too many steps, or did not repeat the steps of an earlier run.
        """
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({code, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if self._stopped.is_set():
                await self._wait_idle(code)
        finally:
            self._closed = True
            stopped.cancel()
            code.cancel()
            await asyncio.wait({code})
        if self._failure is not None or self._pauses:
            _retrieve(code)
            raise self._failure or joined(self._pauses)
        if code.cancelled():
            raise ToolExecutionError.content_free(f"The code of {self._agent} cancelled itself.", executed="yes")
        return code.result()

    async def _wait_idle(self, code: "asyncio.Task[T]") -> None:
        while not code.done():
            for _ in range(_SETTLE):
                await asyncio.sleep(0)
            if not self._active:
                return
            await self._idle.wait()


def _retrieve(code: "asyncio.Task[T]") -> None:
    """Retrieves the exception of stopped code, so that asyncio does not log it."""
    if not code.cancelled():
        code.exception()
