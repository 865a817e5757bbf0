"""The interface between the code of a custom agent and its run. docs/custom-agents.md describes it for authors."""

import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from ...protocol.error_codes import (
    InvalidArgumentsError,
    ToolError,
    ToolExecutionError,
    ToolNotFoundError,
    error_from_wire,
)
from ...protocol.input_request import InputDecision, InputRequest
from ...protocol.name_suggestions import close_names, did_you_mean
from ...protocol.tool_call import Json, Metadata, Timings, ToolResult
from ...providers import FunctionTool, Message
from ..conversation import Turn
from ..orchestration_context import OrchestrationContext, RunSpending
from ..tool import ToolOutput
from ..tool_context import ToolContext
from ..tool_definition import Tool
from .agent_definition import Agent, Role, Variable
from .agent_messages import TurnAnswer, row_of
from .agent_own_steps import BudgetLeft, OwnStepArguments, agent_read_step, agent_step
from .agent_pause import NO_CREDENTIAL, credential_refusal, is_askable, pause_for
from .agent_run import AgentRun, RoleAnswer, answer_of
from .agent_snapshot import OfferedFunction, RoleSnapshot
from .agent_steps import AgentSteps, request_id
from .run_totals import CallReport, RunTotals
from .turn_attempts import make_turn

T = TypeVar("T")

MAX_BRANCH_CHARS: Final = 40
"""The maximum total length of the names of nested branches. They precede the names of child calls, which have at most
80 characters.
"""
_in_step: Final[ContextVar[bool]] = ContextVar("in_step", default=False)
"""Whether the code runs inside a ``step``, which a resumed run does not repeat."""


@dataclass(frozen=True, eq=False)
class CustomRun:
    """One run of a custom agent's code. All branches of its context share it."""

    run: AgentRun
    steps: AgentSteps
    prompt: str
    variables: Mapping[str, Variable]
    context: OrchestrationContext
    spending: RunSpending | None


class AgentContext:
    """The context of the code of a custom agent.

    After a pause or a restart the code runs again from its beginning, and each step that ended returns its stored
    result. So the code must make the same steps in the same order: it must depend only on this context and on results
    of its steps. A run that makes other steps fails with an error. Every awaited method is a step.

    Concurrent steps must be started in the same order each time, as ``asyncio.gather`` does. Code that makes several
    steps concurrently with other code needs a separate ``branch``.
    """

    def __init__(self, custom: CustomRun, prefix: str = "") -> None:
        self._custom = custom
        self._prefix = prefix
        self._number = 0
        self._run_id = custom.run.snapshot.code.run_id if custom.run.snapshot.code else ""
        self.random: Final = random.Random(f"{self._run_id}/{prefix}")  # noqa: S311 - it must repeat, not surprise
        """A source of random numbers that are the same in a resumed run. They are not secret."""

    @property
    def prompt(self) -> str:
        """The task or message."""
        return self._custom.prompt

    @property
    def images(self) -> tuple[str, ...]:
        """The images of the message, as ``https:`` and ``data:`` URLs. Roles see them if their models accept images."""
        return self._custom.run.snapshot.images

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The call's ``variables``. The prompts of the roles contain them already."""
        return self._custom.variables

    @property
    def history(self) -> tuple[Turn, ...]:
        """The conversation's earlier turns, oldest first."""
        return self._custom.run.snapshot.history

    @property
    def agent(self) -> Agent:
        """The agent's definition at the start of the run."""
        return self._custom.run.agent

    @property
    def roles(self) -> Mapping[str, RoleSnapshot]:
        """The roles by name: their prompts, models and functions at the start of the run."""
        return self._custom.run.snapshot.roles

    @property
    def run_id(self) -> str:
        """The id of this run, which stays the same after a restart; for idempotency keys of other systems."""
        return self._run_id

    @property
    def started_at(self) -> float:
        """The start of the run, in Unix seconds, which stays the same after a restart."""
        code = self._custom.run.snapshot.code
        return code.started_at if code else 0.0

    @property
    def streaming(self) -> bool:
        """Whether the caller receives the chunks of ``stream``."""
        return self._custom.context.streaming

    def stream(self, text: str) -> None:
        """Send a chunk of the answer to a caller that streams. Never blocks. A resumed run sends it again."""
        self._custom.context.stream(text)

    def progress(self, message: str) -> None:
        """Report progress to the caller. Never blocks."""
        self._custom.context.progress(message)

    def branch(self, name: str) -> "AgentContext":
        """A context for code that runs concurrently with other code: its steps are numbered separately.

        Raises:
            ValueError: the name is not a letter and up to 39 more of ``A-Za-z0-9_-``, or the names of nested branches
                are too long together.
        """
        prefix = f"{self._prefix}{name}."
        if not (name.isascii() and name[:1].isalpha() and name.replace("_", "").replace("-", "").isalnum()):
            raise ValueError(f"{name!r} is not the name of a branch; use a letter and up to 39 of A-Za-z0-9_-")
        if len(prefix) > MAX_BRANCH_CHARS:
            raise ValueError(f"the names of nested branches have more than {MAX_BRANCH_CHARS} characters: {prefix!r}")
        return AgentContext(self._custom, prefix)

    async def run_role(self, role: str, prompt: str, *, with_history: bool = False, stream: bool = False) -> RoleAnswer:
        """Run a role until it answers: its model's turns, and the calls of its tools.

        ``with_history``: the model reads the conversation's earlier turns. ``stream``: the caller gets the text while
        it is written.

        Raises:
            CallError: the role failed or does not exist.
        """
        member = self._role(role)
        step = await self._begin()
        run, context = self._custom.run, self._custom.context
        arguments = run.role_arguments(member, prompt, with_history=with_history)
        await self._custom.steps.check_call(step, "agent_role", arguments)
        result = await self._guarded(
            run.role_call(member, prompt, step, context, with_history=with_history, stream=stream)
        )
        answer = answer_of(result, member, step)
        self._custom.steps.report(step, answer.totals)
        self._custom.steps.of_conversation = self._custom.steps.of_conversation or answer.of_conversation
        return answer

    async def turn(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        functions: Sequence[FunctionTool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        stream: bool = False,
    ) -> TurnAnswer:
        """Ask the model of a role once. If it wants tool calls, make them with ``call_tool``.

        The role's prompt is sent first, unless ``messages`` begin with a ``system`` message. ``functions`` replace the
        role's.

        Raises:
            CallError: the vendor failed, after up to two retries; the run has made ``max_turns``; or there is no such
            role.
            TypeError: a message has images.
        """
        member = self._role(role)
        rows = [row_of(message) for message in messages]
        prompt = self.roles[role].prompt
        if prompt and not (rows and rows[0]["role"] == "system"):
            rows.insert(0, {"role": "system", "content": prompt})
        arguments: dict[str, Any] = {"agent": self.agent.name, "role": role, "messages": rows}
        if functions is not None:
            arguments["functions"] = [
                {"name": each.name, "description": each.description, "parameters": each.parameters}
                for each in functions
            ]
        options = {"temperature": temperature, "max_tokens": max_tokens}
        arguments |= {name: value for name, value in options.items() if value is not None}
        step = await self._begin()
        await self._custom.steps.check_call(step, "agent_turn", arguments)
        context = self._custom.context
        self._custom.steps.report(step, RunTotals(1))
        return await self._guarded(make_turn(self._custom.run, member, arguments, step, context, stream=stream))

    async def call_tool(
        self, tool: str, arguments: Mapping[str, Json] | None = None, *, role: str | None = None
    ) -> ToolResult:
        """Call a tool or an agent that ``role`` may call, or that any role may call. Check ``ok`` of the result: a
        failed call has an ``error``. If ``approve`` of a role names the tool, the run first pauses for a person; a call
        without approval has the error ``NOT_APPROVED``.

        Raises:
            CallError: the roles do not have this tool, or there is no such role.
        """
        functions = self._functions(role)
        known = functions.get(tool)
        if known is None:
            hint = did_you_mean(close_names(tool, functions, n=2))
            raise ToolNotFoundError(f"no role of {self.agent.name} may call {tool[:64]!r}. {hint}".strip())
        wanted = dict(arguments or {})
        step = await self._begin()
        if known.approve:
            text = f"{self.agent.name} wants to call {tool}."
            request = InputRequest(request_id(step, [tool, wanted]), "approve", tool, wanted, text)
            decision = await self._decision(step, request)
            if decision.decision != "approve":
                reason = f" Reason: {decision.text}" if decision.text else ""
                message = f"A person did not approve the call, so it did not run.{reason}"
                self._report_call(step, tool, role, "NOT_APPROVED")
                return ToolResult(
                    Metadata(0.0, Timings()), error=ToolError("NOT_APPROVED", message, "no", retryable=False)
                )
            wanted = wanted if decision.arguments is None else dict(decision.arguments)
        await self._custom.steps.check_call(step, tool, wanted)
        context = self._custom.context
        if known.kind == "tool" and context.needed_credentials(tool):
            without = await self._guarded(credential_refusal(context, tool, step, self.agent.decide_within_s))
            if without is not None:
                self._report_call(step, tool, role, NO_CREDENTIAL)
                error = ToolError(NO_CREDENTIAL, without, "no", retryable=False)
                return ToolResult(Metadata(0.0, Timings()), error=error)
        free = {name for name, each in functions.items() if each.kind == "tool" and not each.approve}
        within = frozenset(free) if known.kind == "tool" else None
        result = await self._guarded(context.call(tool, wanted, name=step, journal=True, within=within))
        self._report_call(step, tool, role, result.outcome)
        return result

    async def ask(self, question: str) -> str | None:
        """Ask a person a question. The run pauses until it is answered. Returns None if there is no answer in time.

        Raises:
            InvalidArgumentsError: the question is empty, or too long for a person.
        """
        step = await self._begin()
        request = InputRequest(request_id(step, question), "question", text=question)
        if not question.strip():
            raise InvalidArgumentsError("The question is empty.")
        decision = await self._decision(step, request)
        return decision.text if decision.decision == "answer" else None

    async def step(
        self,
        what: str,
        work: Callable[[], Awaitable[T]],
        *,
        changes_nothing: bool = False,
        timeout_s: float | None = None,
    ) -> Any:
        """Run ``work`` as one step: code whose result may differ each time, such as a request to another system. A
        resumed run gets the stored result, so the result must be JSON. ``what`` describes the step in a few words.

        An interrupted step raises ``OutcomeUnknownError``; with ``changes_nothing`` it runs again instead. ``work``
        cannot make steps.

        Raises:
            CallError: ``work`` raised an exception, or its result is not JSON.
        """
        own = agent_read_step if changes_nothing else agent_step

        async def enter(_arguments: OwnStepArguments, _context: ToolContext) -> ToolOutput:
            _in_step.set(True)  # in the task of the child call
            return ToolOutput(data=await work())

        return await self._own_step(own.with_function(enter), what, timeout_s)

    async def now(self) -> float:
        """The current time in Unix seconds. In a resumed run, the time at which this step was first made."""

        async def tell(_arguments: OwnStepArguments, _context: ToolContext) -> ToolOutput:
            return ToolOutput(data=time.time())

        value: float = await self._own_step(agent_read_step.with_function(tell), "now", None)
        return value

    async def budget(self) -> BudgetLeft:
        """The run's remaining budget. In a resumed run, the budget at the time at which this step was first made."""
        custom = self._custom

        async def tell(_arguments: OwnStepArguments, _context: ToolContext) -> ToolOutput:
            spending = custom.spending
            left = BudgetLeft(
                custom.run.turns_left,
                custom.context.remaining(),
                None if spending is None else spending.left_tokens,
                {} if spending is None else dict(spending.left),
            )
            return ToolOutput(data=msgspec.to_builtins(left))

        return msgspec.convert(await self._own_step(agent_read_step.with_function(tell), "budget", None), BudgetLeft)

    async def _own_step(self, own: Tool, what: str, timeout_s: float | None) -> Any:
        arguments = {"agent": self.agent.name, "what": what}
        step = await self._begin()
        await self._custom.steps.check_call(step, own.name, arguments)
        result = await self._guarded(
            self._custom.context.call(own, arguments, name=step, timeout_s=timeout_s, journal=True)
        )
        if result.error is not None:
            error = error_from_wire(result.error)
            raise type(error)(f"step {what!r}: {error.message}", executed=error.executed, summary=error.summary)
        return result.structured

    async def _begin(self) -> str:
        """The name of the next step."""
        if _in_step.get():
            message = "code inside a step cannot make steps, because a resumed run does not repeat them"
            raise ToolExecutionError.content_free(f"{self.agent.name}: {message}")
        self._number += 1
        step = f"{self._prefix}s{self._number}"
        await self._custom.steps.begin(step)
        return step

    async def _guarded(self, work: Awaitable[T]) -> T:
        return await self._custom.steps.guarded(work)

    async def _decision(self, step: str, request: InputRequest) -> InputDecision:
        await self._custom.steps.check_request(step, request.id)
        if not is_askable(request):
            raise InvalidArgumentsError("The request is too long for a person to decide on.")
        decision = self._custom.context.decision(request.id)
        if decision is None:
            return await self._guarded(_pause(request, self.agent.decide_within_s))
        return decision

    def _role(self, name: str) -> Role:
        if name not in self.roles:
            hint = did_you_mean(close_names(name, self.roles, n=1)) or f"its roles are {', '.join(self.roles)}"
            raise ToolExecutionError(
                f"The code of {self.agent.name} named the role {name!r}, which it does not have; {hint}"
            )
        return self.agent.role(name)

    def _functions(self, role: str | None) -> dict[str, OfferedFunction]:
        """The tools and agents of a role, or of all roles. For all roles, a call needs approval if any role requires
        it.
        """
        names = self.roles if role is None else [self._role(role).name]
        functions: dict[str, OfferedFunction] = {}
        for each in (function for name in names for function in self.roles[name].functions):
            if each.kind in {"tool", "agent"} and (each.approve or each.name not in functions):
                functions[each.name] = each
        return functions

    def _report_call(self, step: str, tool: str, role: str | None, outcome: str) -> None:
        self._custom.steps.report(step, RunTotals(calls=(CallReport(role or "", tool[:64], step, outcome),)))


async def _pause(request: InputRequest, within_s: float) -> NoReturn:
    raise pause_for([request], within_s)
