"""What is expected of a run, judgements, and pass rates."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.agent_evals import EvidenceOfRun, wilson_interval
from toold.cli.agent_evals.eval_checks import MadeCall, failure
from toold.cli.agent_evals.eval_file import EvalCase, Expectation, Judge
from toold.cli.agent_evals.eval_judge import MAX_JUDGED_CHARS, JudgementError, judge_request, read_judgement
from toold.cli.agent_evals.pass_rate import Z_95

RUN = EvidenceOfRun(
    "All is well: 42.",
    (
        MadeCall("main", "status", {}, "ok"),
        MadeCall("main", "echo", {"value": {"n": 5}}, "ok"),
        MadeCall("clerk", "echo", {"value": 1}, "TIMEOUT"),
    ),
)


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ({"called": "echo"}, None),
        ({"called": "echo", "times": 2}, None),
        ({"called": "echo", "times": 1}, "called echo 2 times, not 1"),
        ({"called": "echo", "where": "value.n >= 5"}, None),
        ({"called": "echo", "where": "value.n > 5"}, "did not call echo (where value.n > 5); it called status, echo"),
        ({"called": "echo", "role": "clerk", "outcome": "TIMEOUT"}, None),
        ({"called": "echo", "role": "clerk", "outcome": "ok"}, "did not call echo (role clerk) (outcome ok)"),
        ({"not_called": "delete"}, None),
        ({"not_called": "echo", "where": "value = 1"}, "called echo (where value = 1): "),
        ({"order": ["status", "echo", "echo"]}, None),
        ({"order": ["echo", "status"]}, "it called status → echo → echo"),
        ({"contains": "well"}, None),
        ({"contains": "ill"}, "does not contain 'ill': All is well"),
        ({"equals": "All is well: 42."}, None),
        ({"equals": 5}, "the answer is not 5: "),
        ({"matches": r"\d+\.$"}, None),
        ({"matches": "^well"}, "does not match '^well'"),
        ({"answer": "answer CONTAINS 'well'"}, None),
        ({"answer": "answer = 'ill'"}, "does not meet"),
        ({"schema": {"type": "object"}}, "is not a JSON object"),
    ],
)
def test_an_expectation_is_met_or_says_why_not(expected: dict[str, Any], says: str | None) -> None:
    """Each kind, and each of its options, is checked against the calls in their order or against the answer."""
    found = failure(Expectation.model_validate(expected), RUN)
    assert (found is None) if says is None else (says in (found or ""))


def test_structured_answers_are_checked_as_data() -> None:
    """Schemas, conditions and equality apply to the data of an answer, and JSON text is read for a schema."""
    schema = {"schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    run = EvidenceOfRun({"city": "Bern"}, ())
    expectations = [schema, {"answer": "answer.city = 'Bern'"}, {"equals": {"city": "Bern"}}, {"contains": '"Bern"'}]
    assert [failure(Expectation.model_validate(each), run) for each in expectations] == [None] * 4
    assert failure(Expectation.model_validate(schema), EvidenceOfRun('{"city": "Bern"}', ())) is None
    assert "city" in (failure(Expectation.model_validate(schema), EvidenceOfRun({"town": 1}, ())) or "")


def test_a_judgement_is_an_object_with_a_score() -> None:
    """The object may stand in other text; anything else is not a judgement. The judge reads bounded texts."""
    assert read_judgement('```json\n{"score": 0.5, "reason": "half"}\n```') == (0.5, "half")
    for text in ("good", '{"score": 2}', '{"score": true}', "{}", "{"):
        with pytest.raises(JudgementError, match="no score from 0 to 1"):
            read_judgement(text)
    case = EvalCase.model_validate({"name": "n", "prompt": "p", "expect": [{"judge": "Is it good?"}]})
    request = judge_request(Judge(model="m"), case, "Is it good?", "x" * 2 * MAX_JUDGED_CHARS)
    assert request["messages"][1]["content"].count("x") == MAX_JUDGED_CHARS


@pytest.mark.parametrize(
    ("passed", "runs", "low", "high"),
    [(0, 0, 0.0, 1.0), (8, 10, 0.490162, 0.943318), (10, 10, 0.722467, 1.0), (0, 10, 0.0, 0.277533)],
)
def test_the_interval_is_wilsons(passed: int, runs: int, low: float, high: float) -> None:
    """Known values of the formula; without runs, nothing is known."""
    assert wilson_interval(passed, runs) == pytest.approx((low, high), abs=1e-6)


@given(st.integers(1, 10_000).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_the_bounds_solve_wilsons_equation(counts: tuple[int, int]) -> None:
    """The rate is within the interval, and at a bound the rate is z standard errors of that bound away."""
    passed, runs = counts
    rate = passed / runs
    low, high = wilson_interval(passed, runs)
    assert 0 <= low <= rate <= high <= 1
    for bound in (low, high):
        assert (rate - bound) ** 2 == pytest.approx(Z_95**2 * bound * (1 - bound) / runs, abs=1e-12)
    assert math.isclose(low, 1 - wilson_interval(runs - passed, runs)[1], abs_tol=1e-12)


def test_an_impossible_count_is_an_error() -> None:
    """More passed runs than runs are a mistake of the caller."""
    with pytest.raises(ValueError, match="11 of 10"):
        wilson_interval(11, 10)
