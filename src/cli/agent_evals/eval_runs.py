"""Runs the cases of an evaluation, several at once, and collects their outcomes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ...client import CallResult, MCPWebSocketClient, result_of
from ...protocol.error_codes import CallError
from ...protocol.name_suggestions import close_names, did_you_mean
from ...protocol.tool_call import Metadata
from .eval_checks import EvidenceOfRun, evidence, failure
from .eval_file import EvalCase, EvalFile, Expectation
from .eval_judge import MIN_SCORE, JudgementError, judge_request, read_judgement
from .pass_rate import pass_rate

JUDGE_ATTEMPTS: Final = 2
"""Requests for one judgement: the judge is asked again if its reply has no judgement."""


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one run of a case."""

    run_id: str | None = None
    """For ``toold agents runs show``."""
    failures: tuple[str, ...] = ()
    """The expectations that were not met, as text; empty if the run passed."""
    cost: dict[str, float] = {}
    """Money by currency, judges included."""
    input_tokens: int = 0
    output_tokens: int = 0
    scores: tuple[float, ...] = ()
    """The judges' scores, in the order of the expectations."""

    @property
    def passed(self) -> bool:
        return not self.failures


class CaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How often a case passed."""

    name: str
    agent: str
    runs: tuple[RunOutcome, ...]
    min_pass: float

    @property
    def reached(self) -> bool:
        """Whether it passed often enough."""
        return pass_rate(sum(run.passed for run in self.runs), len(self.runs)).rate >= self.min_pass

    @property
    def cost(self) -> dict[str, float]:
        """Money by currency."""
        return added(run.cost for run in self.runs)

    def data(self) -> dict[str, Any]:
        """The outcome as JSON."""
        rate = pass_rate(sum(run.passed for run in self.runs), len(self.runs))
        return {
            "name": self.name,
            "agent": self.agent,
            "passed": rate.passed,
            "runs": rate.runs,
            "rate": rate.rate,
            "interval": [round(rate.low, 6), round(rate.high, 6)],
            "min_pass": self.min_pass,
            "reached": self.reached,
            "cost": self.cost,
            "outcomes": [{"passed": run.passed, **msgspec.to_builtins(run)} for run in self.runs],
        }


def added(costs: Any) -> dict[str, float]:
    """The sums of amounts by currency."""
    total: defaultdict[str, float] = defaultdict(float)
    for cost in costs:
        for currency, amount in cost.items():
            total[currency] += amount
    return {currency: round(amount, 9) for currency, amount in total.items()}


def runs_of(file: EvalFile, runs: int | None) -> list[int]:
    """How often each case runs."""
    return [runs or case.runs or file.runs for case in file.cases]


def unknown_agent(file: EvalFile, tools: Iterable[str]) -> str | None:
    """Why a daemon with these tools cannot run the file; None if it can."""
    names = sorted(tools)
    for case in file.cases:
        agent = case.agent or file.agent or ""
        if agent not in names:
            hint = did_you_mean(close_names(agent, names, n=1)) or "toold agents list shows the agents."
            return f"{case.name}: the daemon has no agent {agent[:100]!r}; {hint}"
    return None


class EvalRunner:
    """Runs cases with a client. Each run is a call of the agent, a read of its record, and the judges' completions."""

    def __init__(
        self, client: MCPWebSocketClient, file: EvalFile, ended: Callable[[EvalCase, RunOutcome], None]
    ) -> None:
        """``ended`` is called for each run that has ended."""
        self._client = client
        self._file = file
        self._ended = ended
        self._places = asyncio.Semaphore(file.parallel)

    async def run(self, *, runs: int | None = None, min_pass: float | None = None) -> list[CaseOutcome]:
        """Runs all cases; ``runs`` and ``min_pass`` replace those of the file. If it is cancelled, so are the runs.

        Raises:
            ConnectionLostError: the connection to the daemon was lost.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    [group.create_task(self._run(case)) for _ in range(number)]
                    for case, number in zip(self._file.cases, runs_of(self._file, runs), strict=True)
                ]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        default = self._file.min_pass if min_pass is None else min_pass
        return [
            CaseOutcome(
                name=case.name,
                agent=self._agent(case),
                runs=tuple(task.result() for task in started),
                min_pass=default if case.min_pass is None else case.min_pass,
            )
            for case, started in zip(self._file.cases, tasks, strict=True)
        ]

    def _agent(self, case: EvalCase) -> str:
        return case.agent or self._file.agent or ""

    async def _run(self, case: EvalCase) -> RunOutcome:
        async with self._places:
            outcome = await self._outcome(case)
        self._ended(case, outcome)
        return outcome

    async def _outcome(self, case: EvalCase) -> RunOutcome:
        spending = _Spending()
        arguments: dict[str, Any] = {"prompt": case.prompt}
        if case.variables:
            arguments["variables"] = case.variables
        try:
            result = await self._call(self._agent(case), arguments, spending)
        except CallError as error:
            return spending.outcome(None, [f"the run failed: {error.code.value}: {error.message}"])
        data = result.structured
        if not isinstance(data, dict) or "answer" not in data:
            return await self._without_answer(data, spending)
        try:
            record = (await self._client.call("agent_runs", {"run_id": data["run_id"]})).structured
        except CallError as error:
            reason = f"the run's record cannot be read: {error.code.value}: {error.message}"
            return spending.outcome(data["run_id"], [reason])
        run = evidence(data["answer"], record["steps"])
        failures = [problem for each in case.expect if (problem := failure(each, run)) is not None]
        scores: list[float] = []
        for each in case.expect:
            if each.kind == "judge" and not failures:  # a judgement costs money, so not for a failed run
                failures += await self._judged(case, each, run, spending, scores)
        return spending.outcome(data["run_id"], failures, scores)

    async def _without_answer(self, data: Any, spending: "_Spending") -> RunOutcome:
        """The outcome of a call without an answer. A run that waits for a person is cancelled: no one will decide."""
        if not isinstance(data, dict) or not data.get("paused"):
            return spending.outcome(None, ["it is not an agent: its result has no `answer`"])
        await self._client.call("cancel_call", {"call_id": data["call_id"]})
        wants = ", ".join(f"{each['kind']} {each.get('tool') or ''}".strip() for each in data["requests"])
        return spending.outcome(data["call_id"], [f"the run paused, and was cancelled; it waited for: {wants}"])

    async def _judged(
        self, case: EvalCase, expected: Expectation, run: EvidenceOfRun, spending: "_Spending", scores: list[float]
    ) -> list[str]:
        judge = self._file.judge
        if judge is None or expected.judge is None:
            return []
        reason = ""
        for _ in range(JUDGE_ATTEMPTS):
            try:
                result = await self._call("complete", judge_request(judge, case, expected.judge, run.text), spending)
                score, why = read_judgement(result.text)
            except JudgementError as error:
                reason = str(error)
                continue
            except CallError as error:
                return [f"the judge failed: {error.code.value}: {error.message}"]
            scores.append(score)
            least = MIN_SCORE if expected.min_score is None else expected.min_score
            return [] if score >= least else [f"the judge gave {score:g}, less than {least:g}: {why}"]
        return [reason]

    async def _call(self, tool: str, arguments: Mapping[str, Any], spending: "_Spending") -> CallResult:
        timeout = self._file.timeout_s if tool != "complete" else None
        answer = await self._client.answer(tool, arguments, timeout=timeout)
        spending.add(answer.metadata)
        return result_of(answer)


class _Spending:
    """The cost of a run and its judges."""

    def __init__(self) -> None:
        self._parts: list[Metadata] = []

    def add(self, metadata: Metadata) -> None:
        self._parts.append(metadata)

    def outcome(self, run_id: str | None, failures: Sequence[str], scores: Sequence[float] = ()) -> RunOutcome:
        usages = [part.usage for part in self._parts if part.usage is not None]
        return RunOutcome(
            run_id=run_id,
            failures=tuple(failures),
            cost=added({part.cost.currency: part.cost.amount} for part in self._parts if part.cost is not None),
            input_tokens=sum(usage.input_tokens for usage in usages),
            output_tokens=sum(usage.output_tokens for usage in usages),
            scores=tuple(scores),
        )
