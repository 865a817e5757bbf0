"""Runs a recorded run again: asks its models, and answers its tool calls from the recording."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

import msgspec

from ...protocol.agent_record import ChildEntry
from ...protocol.error_codes import CallError
from ...protocol.input_request import InputDecision
from ...protocol.tool_call import ToolResult, encode_result
from ...protocol.user_credential import CredentialField
from ..conversation import Turn
from ..orchestration_context import OrchestrationContext
from ..tool_definition import Tool
from .agent_definition import Role
from .agent_flows import run_flow
from .agent_run import AgentRun, RoleAnswer
from .agent_snapshot import RunSnapshot
from .recorded_answers import RecordedAnswers, not_recorded
from .recorded_run import RecordedRun, read_run
from .result_handles import READ_RESULT
from .role_run import run_role

ToolsMode = Literal["recorded", "live"]
"""``recorded``: tools do not run. ``live``: read-only tools run, and others only if writes are allowed."""


class ReplayOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a replay."""

    run: RecordedRun
    stopped_by: str = ""
    error: CallError | None = None


class ReplayedRun:
    """Runs an agent with another snapshot. Its calls are child calls of the call of ``context``."""

    def __init__(
        self,
        snapshot: RunSnapshot,
        answers: RecordedAnswers,
        context: OrchestrationContext,
        *,
        tools: ToolsMode,
        allow_writes: bool,
    ) -> None:
        self._snapshot = snapshot
        self._answers = answers
        self._context = context
        self._live = tools == "live"
        self._allow_writes = allow_writes
        self._needs_approval = {
            (name, function.target)
            for name, role in snapshot.roles.items()
            for function in role.functions
            if function.approve
        }
        self._entries: list[ChildEntry] = []

    async def run(self) -> ReplayOutcome:
        """Runs the agent's roles. An error of a model or of a limit ends the replay and is part of the outcome."""
        run = AgentRun(self._snapshot, self._context.call_id, self._run_role)
        try:
            flow = await run_flow(run, self._snapshot.request, self._wrapped(self._context, ""), self._run_role)
        except CallError as error:
            return ReplayOutcome(run=self._recorded(None), error=error)
        return ReplayOutcome(run=self._recorded(flow.answer.text), stopped_by=flow.answer.stopped_by)

    async def _run_role(
        self, run: AgentRun, role: Role, prompt: str, context: OrchestrationContext, history: tuple[Turn, ...]
    ) -> RoleAnswer:
        return await run_role(run, role, prompt, self._wrapped(context, role.name), history)

    def _wrapped(self, context: OrchestrationContext, role: str) -> OrchestrationContext:
        inner = context.context if isinstance(context, _ReplayContext) else context
        # It has all members of a context, most of them through __getattr__.
        return cast("OrchestrationContext", _ReplayContext(inner, role, self))

    def _recorded(self, answer: str | None) -> RecordedRun:
        return msgspec.structs.replace(read_run(self._entries, self._snapshot), answer=answer)

    def add(self, call_id: str, tool: str, result: ToolResult) -> None:
        """Adds a call of the replay."""
        encoded = encode_result(result)
        path = call_id.removeprefix(f"{self._context.call_id}/")
        error = None if result.error is None else result.error.code
        self._entries.append(
            ChildEntry(
                path=path,
                tool=tool,
                state="done",
                started_at=time.time(),
                result_bytes=len(encoded),
                error=error,
                result=encoded,
            )
        )

    async def answer(
        self,
        role: str,
        call_id: str,
        tool: str,
        arguments: Mapping[str, Any],
        run_tool: Callable[[], Any],
    ) -> ToolResult:
        """Returns the result of a tool call of the replay. ``run_tool`` runs the tool, if it may run."""
        own_file = tool == READ_RESULT and not self._answers.has(tool, arguments)  # a long result of this replay
        if own_file or (self._live and self._may_run(role, tool)):
            result: ToolResult = await run_tool()
        else:
            recorded = self._answers.take(role, call_id.removeprefix(f"{self._context.call_id}/"), tool, arguments)
            result = recorded or not_recorded(tool, self._answers.unanswered[-1].reason)
        self.add(call_id, tool, result)
        return result

    def _may_run(self, role: str, tool: str) -> bool:
        """Whether a tool runs. Tools that require approval never run, because no person approves calls in a replay."""
        if (role, tool) in self._needs_approval:
            return False
        found = self._context.toolset_view.tools.get(tool)
        return found is not None and (self._allow_writes or found.annotations.read_only_hint)


_HIDDEN: Final = frozenset({"agent_turn", "agent_summary", "agent_role"})


class _ReplayContext:
    """The context of a role in a replay. Turns and roles are child calls as usual; the replay answers tool calls. It
    does not stream. A live call of another agent may pause the replay, as it would pause a run.
    """

    streaming = False

    def __init__(self, context: OrchestrationContext, role: str, replay: ReplayedRun) -> None:
        self.context = context
        self._role = role
        self._replay = replay

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)

    def decision(self, _request_id: str) -> InputDecision:
        """Calls count as approved, because the recording answers them; questions count as unanswered."""
        return InputDecision("approve")

    def needed_credentials(self, _tool: str) -> tuple[CredentialField, ...]:
        """None, because answers from the recording need no credential. A live call fails without one."""
        return ()

    async def call(self, tool: str | Tool, arguments: Mapping[str, Any], *, name: str, **options: Any) -> ToolResult:
        """Implements ``OrchestrationContext.call``."""
        call_id = f"{self.context.call_id}/{name}"
        if isinstance(tool, str):

            async def run_tool() -> ToolResult:
                return await self.context.call(tool, arguments, name=name, **options)

            return await self._replay.answer(self._role, call_id, tool, arguments, run_tool)
        result = await self.context.call(tool, arguments, name=name, **options)
        if tool.name in _HIDDEN:
            self._replay.add(call_id, tool.name, result)
        return result
