"""Evaluations of agents: a file of cases, checks of calls and answers, and pass rates (docs/agents.md).

Used by ``toold agents eval``. Knows the client; the checks and the statistics are pure.
"""

from .eval_checks import EvidenceOfRun
from .eval_file import MAX_RUNS, MAX_TOTAL_RUNS, EvalCase, EvalFile, EvalFileError, read_eval_file
from .eval_runs import CaseOutcome, EvalRunner, RunOutcome, runs_of, unknown_agent
from .pass_rate import PassRate, wilson_interval

__all__ = [
    "MAX_RUNS",
    "MAX_TOTAL_RUNS",
    "CaseOutcome",
    "EvalCase",
    "EvalFile",
    "EvalFileError",
    "EvalRunner",
    "EvidenceOfRun",
    "PassRate",
    "RunOutcome",
    "read_eval_file",
    "runs_of",
    "unknown_agent",
    "wilson_interval",
]
