"""Runs the agents of an architecture, each as a child call, in the order of its pattern."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...protocol.error_codes import ErrorCode, ToolError
from ...protocol.input_request import CallPausedError
from ...protocol.tool_call import Json, Metadata, PartsOutcome, Timings, ToolResult
from ...shaping import compile_filter, parse_filter
from ..orchestration import RetryPolicy, cannot_wait, time_left
from ..orchestration_context import OrchestrationContext
from .agent_pause import all_of
from .architecture_plan import (
    AGGREGATOR,
    ArchitecturePlan,
    MemberOutcome,
    PlanMember,
    blocks,
    choice_in,
    combining_prompt,
    planning_prompt,
    routing_prompt,
    tasks_in,
)


class ArchitectureFlow:
    """One run. The names of its child calls depend only on the plan and on earlier answers, so a resumed run does not
    repeat calls.
    """

    def __init__(self, plan: ArchitecturePlan, context: OrchestrationContext) -> None:
        self._plan = plan
        self._context = context
        self._left = time_left(plan.timeout_s, context.remaining())
        self._outcomes: dict[str, MemberOutcome] = {}
        self._iterations = 0

    async def run(self, query: str) -> dict[str, Any]:
        """Returns the answer of the architecture, and the outcome of each agent.

        Raises:
            CallPausedError: agents wait for a person.
        """
        plan = self._plan
        match plan.pattern:
            case "sequential":
                answer = await self._in_order(query, "")
            case "loop":
                answer = await self._loop(query)
            case "parallel":
                answer = await self._parallel(query)
            case "hub-spoke":
                answer = await self._routed(query)
            case _:
                answer = await self._delegated(plan.leader(), query, f"m{plan.leader()}")
        self._report(answer)
        results = {member.name: self._outcomes.get(member.name, _UNUSED) for member in plan.members}
        data: dict[str, Any] = {"architecture": plan.name, "pattern": plan.pattern}
        data["results"] = {name: msgspec.to_builtins(_shown(outcome)) for name, outcome in results.items()}
        data["answer"] = answer.result if answer.status == "success" else None
        return data | ({"iterations": self._iterations} if plan.pattern == "loop" else {})

    def _report(self, answer: MemberOutcome) -> None:
        if answer.status == "success":
            self._context.report_parts(PartsOutcome("succeeded"))
            return
        unknown = any(outcome.effect_unknown for outcome in self._outcomes.values())
        failed = [name for name, outcome in self._outcomes.items() if outcome.status == "error"]
        reason = f"agents failed: {', '.join(failed)}"
        self._context.report_parts(PartsOutcome("unknown" if unknown else "failed", reason))

    async def _in_order(self, query: str, suffix: str) -> MemberOutcome:
        """Each agent gets the previous agent's answer. A failed agent ends the run, because the next agent would have
        no input.
        """
        outcome = _UNUSED
        for place in range(len(self._plan.members)):
            outcome = await self._ask(place, query, f"m{place}{suffix}")
            if outcome.status != "success":
                break
            query = outcome.text
        return outcome

    async def _loop(self, query: str) -> MemberOutcome:
        stops = None if self._plan.stop_when is None else compile_filter(parse_filter(self._plan.stop_when))
        outcome = _UNUSED
        for iteration in range(self._plan.max_iterations):
            self._iterations = iteration + 1
            outcome = await self._in_order(query, f".{iteration}")
            if outcome.status != "success" or (stops is not None and stops({"answer": outcome.text})):
                break
            query = outcome.text
        return outcome

    async def _parallel(self, query: str) -> MemberOutcome:
        members = self._plan.members
        aggregator = next((place for place, member in enumerate(members) if member.role == AGGREGATOR), None)
        asked = [place for place in range(len(members)) if place != aggregator]
        ended = await all_of([self._ask(place, query, f"m{place}") for place in asked])
        answers = [(members[place].name, outcome) for place, outcome in zip(asked, ended, strict=True)]
        if all(outcome.status != "success" for _, outcome in answers):
            return answers[0][1]
        if aggregator is None:
            return MemberOutcome("success", blocks(answers))
        return await self._ask(aggregator, combining_prompt(query, answers), f"m{aggregator}")

    async def _routed(self, query: str) -> MemberOutcome:
        """The hub chooses the agent that answers, or answers itself."""
        leader = self._plan.leader()
        below = self._plan.members[leader].below
        outcome = await self._ask(leader, routing_prompt(query, self._members(below)), f"m{leader}")
        chosen = choice_in(outcome.text) if outcome.status == "success" else None
        if chosen is None:
            return outcome
        place = self._place(chosen, below)
        if place is None:
            return self._failed(leader, f"it chose {chosen[:100]!r}, which is not an agent below it")
        return await self._ask(place, query, f"m{place}")

    async def _delegated(self, leader: int, query: str, name: str) -> MemberOutcome:
        """The leader gives tasks to the agents below it, which may delegate too. It then combines their answers."""
        below = self._plan.members[leader].below
        if not below:
            return await self._ask(leader, query, name)
        outcome = await self._ask(leader, planning_prompt(query, self._members(below)), f"{name}.plan")
        tasks = tasks_in(outcome.text) if outcome.status == "success" else None
        if tasks is None:
            return outcome
        places = [self._place(agent, below) for agent, _ in tasks]
        if not tasks or len(tasks) > len(self._plan.members) or None in places:
            named = ", ".join(repr(agent[:100]) for agent, _ in tasks[:5])
            return self._failed(leader, f"its tasks are for {named or 'none'}; the agents below it have other names")
        work = [(place, task) for place, (_, task) in zip(places, tasks, strict=True) if place is not None]
        ended = await all_of(
            [self._delegated(place, task, f"m{place}.{number}") for number, (place, task) in enumerate(work)]
        )
        answers = [(self._plan.members[place].name, each) for (place, _), each in zip(work, ended, strict=True)]
        return await self._ask(leader, combining_prompt(query, answers), f"{name}.answer")

    def _members(self, places: Sequence[int]) -> list[PlanMember]:
        return [self._plan.members[place] for place in places]

    def _place(self, name: str, places: Sequence[int]) -> int | None:
        return next((place for place in places if self._plan.members[place].name == name), None)

    def _failed(self, place: int, error: str) -> MemberOutcome:
        outcome = self._outcomes[self._plan.members[place].name] = MemberOutcome("error", error=error)
        return outcome

    async def _ask(self, place: int, prompt: str, name: str) -> MemberOutcome:
        """One agent's answer. Calls that fail for a temporary reason are repeated."""
        member, pauses = self._plan.members[place], list[CallPausedError]()
        if self._left() <= 0:
            return self._failed(place, f"the architecture's timeout of {self._plan.timeout_s:g} s has expired")

        async def call(
            tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
        ) -> ToolResult:
            try:
                return await self._context.call(tool, arguments, name=name, timeout_s=timeout_s)
            except CallPausedError as pause:
                pauses.append(pause)
                return ToolResult(Metadata(0.0, Timings()), error=cannot_wait(tool, pause))

        policy = RetryPolicy(call=call, left=self._left, sleep=asyncio.sleep)
        tool = self._context.find_tool(member.tool)
        attempt = await policy.attempt(
            tool, {"prompt": prompt}, name=name, retries=self._plan.retries, timeout_s=self._left()
        )
        if pauses:
            raise pauses[-1]
        outcome = MemberOutcome("success", attempt.result.text)
        if attempt.error is not None:
            outcome = MemberOutcome("error", error=_words(attempt.error), effect_unknown=attempt.unknown)
        self._outcomes[member.name] = outcome
        return outcome


_UNUSED = MemberOutcome("skipped")


def _shown(outcome: MemberOutcome) -> MemberOutcome:
    return msgspec.structs.replace(outcome, effect_unknown=False)


def _words(error: ToolError) -> str:
    return f"{error.code}: {error.message}" if error.code != ErrorCode.TOOL_EXECUTION_ERROR else error.message
