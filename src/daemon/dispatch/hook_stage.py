"""Asks the hooks before a call starts and after its tool has returned, and applies their answers to the call."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from ...call_hooks import CallHooks, HookedCall
from ...protocol.json_pieces import LONG_BYTES
from ...protocol.tool_call import Json, ToolResult
from ...tools import AdaptedValues, BoundArguments, ToolCatalog
from ..off_loop import off_loop
from . import call_outcome
from .running_call import RunningCall


class HookStage:
    """Asks the hooks about calls, including the tool calls of agents, but not about an agent's internal calls, such as
    model turns.
    """

    def __init__(self, hooks: CallHooks, catalog: Callable[[], ToolCatalog], clock: Callable[[], float]) -> None:
        self._hooks = hooks
        self._catalog = catalog
        self._clock = clock

    async def result(self, call: RunningCall, run: Callable[[RunningCall], Awaitable[ToolResult]]) -> ToolResult:
        """Runs a call with ``run`` and returns its result, if the hooks allow it. Never raises.

        Hooks are not asked again about the stored result of an earlier call with the same request id.
        """
        try:
            await self._before(call)
            result = await run(call)
            if call.result_checked and call.end_reason is None and call.previous_answer is None and call.paused is None:
                result = await self._after(call, result)
        except BaseException as error:  # noqa: BLE001 - as for tools: a cancellation, or any error, is the result
            return call_outcome.failed(call, call_outcome.of_exception(call, error), self._clock())
        return result

    async def _before(self, call: RunningCall) -> None:
        """Asks whether a call may start; its arguments may change.

        Raises:
            CallError: it may not start.
        """
        tool, principal = call.tool.name, call.session.principal.name
        if call.parent is not None and not self._catalog().registry.has(call.tool):
            return
        call.result_checked = self._hooks.covers("after", tool, principal)
        if not self._hooks.covers("before", tool, principal):
            return
        long = call.request.frame_bytes > LONG_BYTES
        changed = await self._hooks.before(hooked(call), _arguments(call), partial(self._bind, call), long=long)
        if changed is not None:
            bound, call.current_arguments, call.changed_by = changed
            call.arguments = bound.values if isinstance(bound, AdaptedValues) else bound

    async def _after(self, call: RunningCall, result: ToolResult) -> ToolResult:
        """The result of a call after the hooks have seen it. If the call failed and its tool did not start, the result
        has only text of the daemon, and is returned unchanged.

        Raises:
            CallError: it is withheld.
        """
        if not result.ok and not call.entered:
            return result
        try:
            changed = await self._hooks.after(hooked(call), _arguments(call), result, long=call.long_result)
        except (TypeError, ValueError, RecursionError) as error:
            raise call_outcome.not_serialisable(call, error) from error
        if changed is None:
            return result
        changed_result, call.result_changed_by = changed
        return changed_result

    async def _bind(self, call: RunningCall, arguments: dict[str, Json]) -> BoundArguments:
        """Bind changed arguments like a caller's arguments.

        Raises:
            CallError: they are invalid.
        """
        bind = partial(self._catalog().bind, call.tool, arguments)
        return await off_loop(bind) if len(msgspec.json.encode(arguments)) > LONG_BYTES else bind()


def hooked(call: RunningCall) -> HookedCall:
    """The description of a call that hooks get."""
    session = call.session
    return HookedCall(
        call.id,
        call.tool.name,
        call.tool.source,
        session.principal.name,
        session.transport,
        session.client.name,
        session.toolset,
        call.tool.annotations.read_only_hint,
        None if call.parent is None else call.parent.id,
        msgspec.UNSET if call.request.meta is None else call.request.meta,
    )


def _arguments(call: RunningCall) -> dict[str, Json]:
    return call.request.arguments if call.current_arguments is None else call.current_arguments
