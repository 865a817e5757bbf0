"""Runs of hosted agents, and a daemon that is killed while it writes their journal."""

from pathlib import Path

import pytest
from tests.chaos.agent_runs import Expected, judge, run


@pytest.mark.process
async def test_runs_of_agents_survive_kills(tmp_path: Path) -> None:
    """After kills at commits to the journal, each of 20 runs has its answer, and each write happened once or is
    unknown to its model.
    """
    verdict = await run(tmp_path, runs=20, kills=3, seed=1, report=lambda _: None)
    assert not verdict.problems
    assert verdict.kills > 0


def test_a_repeated_write_is_found() -> None:
    """The judge reports a write that happened twice, one that is missing, and another answer."""
    expected = Expected("solo", "", "done", 2, 1)
    calls = [{"tool": "sim_effect", "outcome": "ok"}]
    answer = {"result": {"answer": "done", "turns": 2, "calls": calls}}
    assert judge(expected, answer, {"run0 a": 1}) == (0, "")
    assert "but 2 happened" in judge(expected, answer, {"run0 a": 2})[1]
    assert "but 0 happened" in judge(expected, answer, {})[1]
    assert "not 'done'" in judge(expected, {"result": {**answer["result"], "answer": "else"}}, {"run0 a": 1})[1]
    unknown = {"result": {**answer["result"], "calls": [{"tool": "sim_effect", "outcome": "OUTCOME_UNKNOWN"}]}}
    assert judge(expected, unknown, {}) == (1, "")
