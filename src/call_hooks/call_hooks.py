"""The hooks of a daemon: asks them about calls, and applies their answers.

Hooks are asked one after the other, in the order of the configuration. Each sees the changes of earlier hooks.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, Protocol, TypeVar

import msgspec
import structlog

from ..protocol.error_codes import (
    CallError,
    Executed,
    InvalidArgumentsError,
    PermissionDeniedError,
    ServiceUnavailableError,
)
from ..protocol.json_pieces import LONG_BYTES
from ..protocol.terminal_text import terminal_safe
from ..protocol.tool_call import Json, ToolResult
from .hook_messages import (
    MAX_WORDS,
    HookAnswer,
    HookAnswerError,
    HookedCall,
    HookQuestion,
    changed_result,
    encoded,
    hooked_result,
    read_answer,
)
from .hook_program import HookProgram
from .hook_server import HookServer
from .hook_settings import HookEvent, HookSettings

MAX_QUESTIONS: Final = 16
"""The maximum number of simultaneous questions to one hook. Further questions wait, within their time."""

HookOutcome = Literal["allowed", "changed", "refused", "failed"]
_T = TypeVar("_T")

_log = structlog.get_logger("toold.hooks")


class HookBackend(Protocol):
    """Asks a hook: a program or a server."""

    async def ask(self, question: bytes, seconds: float) -> bytes:
        """Returns the answer.

        Raises:
            HookAnswerError: there is no answer.
        """
        ...

    async def run(self) -> None:
        """Keeps the hook ready for questions until it is cancelled. May return early."""
        ...

    async def close(self) -> None:
        """Releases the resources."""
        ...


class HookCounts(msgspec.Struct):
    """The outcomes of the questions to one hook about one event."""

    outcomes: dict[HookOutcome, int] = msgspec.field(
        default_factory=lambda: {"allowed": 0, "changed": 0, "refused": 0, "failed": 0}
    )
    seconds: float = 0.0
    """The time for which calls waited for the hook."""


class _Hook:
    """One hook. ``close`` stops it."""

    def __init__(self, name: str, settings: HookSettings) -> None:
        self.name = name
        self.settings = settings
        self.problem: str | None = None
        """Why there was no usable answer to the last question."""
        self.counts: dict[HookEvent, HookCounts] = {event: HookCounts() for event in settings.events}
        self._backend: HookBackend = HookProgram(name, settings) if settings.command else HookServer(name, settings)
        self._free = asyncio.Semaphore(MAX_QUESTIONS)
        self._task = asyncio.create_task(self._backend.run(), name=f"hook {name}")

    async def ask(self, question: HookQuestion, *, long: bool) -> HookAnswer:
        """Asks about a call. ``long``: the question may be long.

        Raises:
            HookAnswerError: there is no usable answer.
        """
        seconds, clock = self.settings.timeout_s, asyncio.get_running_loop().time
        data = await asyncio.to_thread(encoded, question) if long else encoded(question)
        until = clock() + seconds
        try:
            async with asyncio.timeout_at(until):
                await self._free.acquire()
        except TimeoutError:
            raise HookAnswerError(f"{MAX_QUESTIONS} earlier questions were not answered in time") from None
        try:
            answer = await self._backend.ask(data, max(0.0, until - clock()))
        finally:
            self._free.release()
        if len(answer) > LONG_BYTES:
            return await asyncio.to_thread(read_answer, answer, question.event)
        return read_answer(answer, question.event)

    async def close(self) -> None:
        """Ends the hook, after the questions that were already asked."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.timeout_s):
                for _ in range(MAX_QUESTIONS):
                    await self._free.acquire()
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._backend.close()


class CallHooks:
    """All hooks. Use it only in the event loop's thread."""

    def __init__(self) -> None:
        self._hooks: dict[str, _Hook] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<CallHooks {', '.join(self._hooks) or 'none'}>"

    @property
    def active(self) -> bool:
        """Whether there are any hooks."""
        return bool(self._hooks)

    @property
    def counts(self) -> Mapping[tuple[str, HookEvent], HookCounts]:
        """The counts by hook and event."""
        return {(hook.name, event): counts for hook in self._hooks.values() for event, counts in hook.counts.items()}

    @property
    def problems(self) -> list[str]:
        """The problems of hooks whose last answer was not usable, for operators."""
        return [f"hook {hook.name}: {hook.problem}" for hook in self._hooks.values() if hook.problem is not None]

    def apply(self, hooks: Mapping[str, HookSettings]) -> None:
        """Replaces the hooks. Hooks with unchanged settings stay, with their programs."""
        earlier, self._hooks = self._hooks, {}
        for name, settings in hooks.items():
            same = earlier.get(name)
            if same is not None and same.settings == settings:
                self._hooks[name] = earlier.pop(name)
            else:
                self._hooks[name] = _Hook(name, settings)
        for hook in earlier.values():
            closing = asyncio.create_task(hook.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Ends all hooks."""
        self.apply({})
        if self._closing:
            await asyncio.wait(self._closing)

    def covers(self, event: HookEvent, tool: str, principal: str) -> bool:
        """Whether any hook is asked about this event of a call."""
        return any(hook.settings.covers(event, tool, principal) for hook in self._hooks.values())

    async def before(
        self,
        call: HookedCall,
        arguments: dict[str, Json],
        bind: Callable[[dict[str, Json]], Awaitable[_T]],
        *,
        long: bool,
    ) -> tuple[_T, dict[str, Json], str] | None:
        """Asks before a call starts. Returns the changed arguments (bound by ``bind``, and unbound) and the name of the
        last hook that changed them; None if no hook did.

        Raises:
            PermissionDeniedError: a hook refuses the call.
            ServiceUnavailableError: a required hook gave no usable answer.
        """
        changed: tuple[_T, dict[str, Json], str] | None = None
        for hook in self._covering("before", call):
            started = time.monotonic()
            try:
                answer = await hook.ask(HookQuestion("before", call, arguments), long=long)
                if answer.arguments is not msgspec.UNSET:
                    changed = await _bound(bind, answer.arguments), answer.arguments, hook.name
                    arguments = answer.arguments
            except HookAnswerError as error:
                self._failed(hook, "before", error, started)
                continue
            self._answered(hook, "before", answer, started)
        return changed

    async def after(
        self, call: HookedCall, arguments: dict[str, Json], result: ToolResult, *, long: bool
    ) -> tuple[ToolResult, str] | None:
        """Asks about the result of a call. Returns the changed result, and the name of the last hook that changed it;
        None if no hook did.

        Raises:
            PermissionDeniedError: a hook withholds the result.
            ServiceUnavailableError: a required hook gave no usable answer.
            TypeError, ValueError, RecursionError: the result cannot be written as JSON.
        """
        changed: tuple[ToolResult, str] | None = None
        for hook in self._covering("after", call):
            started = time.monotonic()
            shown = await asyncio.to_thread(hooked_result, result) if long else hooked_result(result)
            try:
                answer = await hook.ask(HookQuestion("after", call, arguments, shown), long=long)
                if answer.result is not msgspec.UNSET:
                    result = changed_result(result, answer.result)
                    changed = result, hook.name
            except HookAnswerError as error:
                self._failed(hook, "after", error, started, result)
                continue
            self._answered(hook, "after", answer, started, result)
        return changed

    def _covering(self, event: HookEvent, call: HookedCall) -> list[_Hook]:
        return [hook for hook in self._hooks.values() if hook.settings.covers(event, call.tool, call.principal)]

    def _answered(
        self, hook: _Hook, event: HookEvent, answer: HookAnswer, started: float, result: ToolResult | None = None
    ) -> None:
        hook.problem = None
        outcome = _outcome(answer)
        self._count(hook, event, outcome, started)
        if outcome == "refused":
            raise _refusal(hook.name, event, str(answer.refuse), result)

    def _failed(
        self, hook: _Hook, event: HookEvent, error: HookAnswerError, started: float, result: ToolResult | None = None
    ) -> None:
        self._count(hook, event, "failed", started)
        if hook.problem != str(error):
            _log.warning("hook failed", hook=hook.name, hook_event=event, reason=str(error))
        hook.problem = str(error)
        if hook.settings.on_failure == "refuse":
            raise _unavailable(hook.name, event, result)

    @staticmethod
    def _count(hook: _Hook, event: HookEvent, outcome: HookOutcome, started: float) -> None:
        counts = hook.counts[event]
        counts.outcomes[outcome] += 1
        counts.seconds += time.monotonic() - started


def _outcome(answer: HookAnswer) -> HookOutcome:
    if answer.refuse is not msgspec.UNSET:
        return "refused"
    return "allowed" if answer.arguments is msgspec.UNSET and answer.result is msgspec.UNSET else "changed"


async def _bound(bind: Callable[[dict[str, Json]], Awaitable[_T]], arguments: dict[str, Json]) -> _T:
    try:
        return await bind(arguments)
    except InvalidArgumentsError as error:
        raise HookAnswerError(f"its arguments are invalid: {error.message}") from None


def _refusal(hook: str, event: HookEvent, words: str, result: ToolResult | None) -> CallError:
    """The error of a call that a hook refuses, or whose result it withholds."""
    words = terminal_safe(words[:MAX_WORDS], keep="\n").strip()
    what = "refuses the call" if event == "before" else "withholds the result"
    summary = f"The hook {hook} {what}."
    message = f"The hook {hook} {what}: {words}" if words else summary
    executed = _executed(result)
    return PermissionDeniedError(message, executed=executed, details={"hook": hook}, summary=summary)


def _unavailable(hook: str, event: HookEvent, result: ToolResult | None) -> CallError:
    """The error of a call without the required answer of a hook."""
    what = "the call was not made" if event == "before" else "its result is withheld"
    message = f"The hook {hook} gave no usable answer, so {what}; the daemon's log has the reason."
    executed = _executed(result)
    return ServiceUnavailableError.content_free(message, executed=executed, details={"hook": hook})


def _executed(result: ToolResult | None) -> Executed:
    """Whether a call with this result had an effect. None: the call did not start."""
    if result is None:
        return "no"
    return "yes" if result.error is None else result.error.executed
