"""Makes the tool calls of a role's turn as child calls, and converts their results and errors to messages to the
model.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ...protocol.input_request import InputRequest
from ...protocol.name_suggestions import close_names, did_you_mean
from ...protocol.tool_call import Json, ToolResult
from ..orchestration_context import OrchestrationContext
from .agent_definition import Role
from .agent_messages import TurnAnswer, WantedCall, answer_row, problem_text, result_rows, result_text
from .agent_pause import NO_CREDENTIAL, all_of, credential_refusal, is_askable, pause_for, refusal_text
from .agent_run import AgentRun, answer_of
from .agent_snapshot import OfferedFunction
from .result_handles import can_read, handle_of
from .role_dialogue import Exchange
from .run_totals import CallReport, RunTotals
from .turn_results import read_chars, shortened, tokens_of_turn

MAX_CALLS_PER_TURN: Final = 64
"""The maximum number of calls in one turn. The model gets an error for each further call."""


class RoleCalls:
    """Makes the calls of one role's turns, several at once."""

    def __init__(self, run: AgentRun, role: Role, context: OrchestrationContext) -> None:
        self._run = run
        self._role = role
        self._context = context
        self._offered = run.offered(role)
        self._functions = {function.name: function for function in self._offered.functions}
        # A tool of the role, such as a pipeline, may call only tools that the role may call without approval.
        self._within = frozenset(
            function.target for function in self._offered.functions if function.kind == "tool" and not function.approve
        )
        self._places = asyncio.Semaphore(role.parallel_tools)
        self.totals = RunTotals()
        """The totals of the calls so far, in the model's order, and of the roles to which it delegated."""
        self.exited = False
        """Whether the model has ended the loop."""
        self.transfer: tuple[Role, str] | None = None
        """The role that answers in place of this role, and its task."""

    async def make(self, answer: TurnAnswer, turn: int) -> Exchange:
        """Makes all calls of a turn; returns the turn with one result per call, in the model's order.

        Raises:
            CallPausedError: a person must decide about some of the calls. The others have ended.
        """
        calls = answer.calls
        self._context.progress(f"{self._role.name}: {_names(calls)}")
        ended = await all_of(self._answer(call, f"t{turn}.{index}", index) for index, call in enumerate(calls))
        self.totals = self.totals.with_later(call.totals for call in ended)
        texts, handles = await self._readable(ended, turn)
        return Exchange((answer_row(answer), *result_rows(answer, texts)), handles, f"t{turn}")

    async def _readable(self, ended: Sequence["_EndedCall"], turn: int) -> tuple[list[str], tuple[str, ...]]:
        """The results for the model. A long result is shortened, and gets a handle for the whole result."""
        chars = read_chars([call.text for call in ended], tokens_of_turn(self._offered.window))
        texts: list[str] = []
        handles: list[str] = []
        for index, (call, limit) in enumerate(zip(ended, chars, strict=True)):
            stored = len(call.text) > limit and call.value is not None and can_read(self._offered, call.tool)
            handle = await handle_of(call.value, f"t{turn}.{index}", self._context) if stored else ""
            texts.append(shortened(call.text, limit, handle))
            handles.append(handle)
        return texts, tuple(handles)

    def note_turn(self, answer: TurnAnswer, name: str) -> None:
        """Reports the turn if a model other than the role's answered it."""
        if reason := answer.model_choice_reason:
            report = CallReport(self._role.name, "agent_turn", name, "ok", answer.model, reason)
            self.totals = self.totals.with_later([RunTotals(calls=(report,))])

    async def _answer(self, call: WantedCall, name: str, index: int) -> "_EndedCall":
        """The outcome of the call. Mistakes of the model do not raise an exception."""
        if index >= MAX_CALLS_PER_TURN:
            return self._refused(call, name, f"at most {MAX_CALLS_PER_TURN} calls per turn; call it again")
        function = self._functions.get(call.name)
        if function is None:
            hint = did_you_mean(close_names(call.name, self._functions, n=2))
            return self._refused(
                call, name, f"there is no function {call.name[:64]!r}. {hint}".strip(), "TOOL_NOT_FOUND"
            )
        try:
            arguments = msgspec.json.decode(call.arguments or "{}")
        except (msgspec.DecodeError, RecursionError) as error:
            return self._refused(call, name, f"the arguments are not JSON: {str(error)[:200]}")
        if not isinstance(arguments, dict):
            return self._refused(call, name, "the arguments are not a JSON object")
        if function.approve or function.kind == "ask":
            request = self._request(function, arguments, name)
            if isinstance(request, str):
                return self._refused(call, name, request)
            decision = self._context.decision(name)
            if decision is None:
                raise pause_for([request], self._run.agent.decide_within_s)
            if function.kind == "ask":
                text = decision.text if decision.decision == "answer" else "The user did not answer in time."
                return _EndedCall(text or "", self._made(call, name, "ok"))
            refusal = refusal_text(decision)
            if refusal is not None:
                return _EndedCall(refusal, self._made(call, name, "NOT_APPROVED"))
            arguments = arguments if decision.arguments is None else decision.arguments
        async with self._places:
            return await self._run_function(function, arguments, call, name)

    def _request(self, function: OfferedFunction, arguments: dict[str, Json], name: str) -> InputRequest | str:
        """The request to a person, or the reason why the call cannot be made."""
        if function.kind == "ask":
            question = arguments.get("question")
            if not isinstance(question, str) or not question:
                return "question: is required, as text"
            request = InputRequest(name, "question", text=question)
        else:
            text = f"The role {self._role.name} of {self._run.agent.name} wants to call {function.target}."
            request = InputRequest(name, "approve", function.target, arguments, text)
        return request if is_askable(request) else "it is too long for a person to decide on"

    async def _run_function(
        self, function: OfferedFunction, arguments: dict[str, Json], call: WantedCall, name: str
    ) -> "_EndedCall":
        if function.kind == "exit":
            self.exited = True
            return _EndedCall("The loop ends with your next answer.")
        if function.kind in {"worker", "spoke", "agent"}:
            task = arguments.get("prompt")
            if not isinstance(task, str) or not task:
                return self._refused(call, name, "prompt: is required; it is the task as text")
            if function.kind != "agent":
                return await self._delegate(function, task, call, name)
            arguments = {"prompt": task}  # the agent's other arguments are meant for people
        elif self._context.needed_credentials(function.target):
            within_s = self._run.agent.decide_within_s
            without = await credential_refusal(self._context, function.target, name, within_s)
            if without is not None:
                return self._refused(call, name, without, NO_CREDENTIAL)
        result = await self._child(function, arguments, name)
        made = self._made(call, name, result.outcome)
        return _EndedCall(result_text(result), made, result.value if result.ok else None, function.target)

    async def _child(self, function: OfferedFunction, arguments: dict[str, Json], name: str) -> ToolResult:
        within = self._within if function.kind == "tool" else None
        return await self._context.call(function.target, arguments, name=name, journal=True, within=within)

    async def _delegate(self, function: OfferedFunction, task: str, call: WantedCall, name: str) -> "_EndedCall":
        role = self._run.agent.role(function.target)
        if function.kind == "spoke":
            if self.transfer is not None:
                return self._refused(call, name, "another role is answering already")
            self.transfer = (role, task)
            return _EndedCall("transferred")
        result = await self._run.role_call(role, task, name, self._context, with_history=False, stream=False)
        totals = self._made(call, name, result.outcome)
        if result.error is None:
            totals = totals.with_later([answer_of(result, role, name).totals])
        return _EndedCall(result_text(result), totals, result.text if result.ok else None)

    def _refused(self, call: WantedCall, name: str, problem: str, code: str = "VALIDATION_ERROR") -> "_EndedCall":
        return _EndedCall(problem_text(code, problem), self._made(call, name, code))

    def _made(self, call: WantedCall, name: str, outcome: str) -> RunTotals:
        return RunTotals(calls=(CallReport(self._role.name, call.name[:64], name, outcome),))


class _EndedCall(NamedTuple):
    """The result of a call for the model, and the call's report for the agent's answer."""

    text: str
    totals: RunTotals = RunTotals()
    value: Json = None
    """The whole result, if it can be stored in a file."""
    tool: str = ""


def _names(calls: Sequence[WantedCall]) -> str:
    names: dict[str, Any] = dict.fromkeys(call.name[:64] for call in calls)
    return ", ".join(names)
