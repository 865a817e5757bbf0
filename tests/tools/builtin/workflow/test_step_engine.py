"""The step engine: the state of a run after each report, and when the expert is asked."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools.builtin.workflow.step_engine import (
    AskUser,
    Conclude,
    Consult,
    Continue,
    StepReport,
    add_step,
    next_action,
    next_number,
)
from toold.tools.builtin.workflow.step_guidance import missing_fields
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition
from toold.tools.builtin.workflow.workflow_run import WorkflowRun, WorkflowStep

Define = Callable[..., WorkflowDefinition]


def report(number: int, *, total: int | None = None, more: bool | None = None, **message: Any) -> StepReport:
    return StepReport(WorkflowStep(number, f"step {number}"), total=total, more=more, values=message)


def run_of(definition: WorkflowDefinition, *reports: StepReport) -> WorkflowRun:
    run = None
    for report in reports:
        run = add_step(definition, run, report)
    assert run is not None
    return run


def test_single_step_is_a_complete_run(define: Define) -> None:
    """Without step numbers, the first step is the last, and the expert is asked."""
    run = run_of(define(), report(1))
    assert (run.done, run.total) == (True, 1)
    assert next_action(define(), run) == Consult()


@pytest.mark.parametrize(
    ("number", "total", "more", "done"),
    [(1, 3, None, False), (3, 3, None, True), (2, 3, False, True), (3, 3, True, False), (5, 3, None, True)],
)
def test_when_a_run_is_done(define: Define, number: int, total: int, more: bool | None, done: bool) -> None:
    """The caller's ``next_step_required`` decides. Without it the step numbers decide."""
    run = run_of(define(), report(number, total=total, more=more))
    assert run.done is done
    assert run.total == max(number, total)


def test_total_steps_carries_over_until_it_changes(define: Define) -> None:
    """A step without ``total_steps`` keeps the earlier value."""
    run = run_of(define(), report(1, total=3), report(2))
    assert (run.total, run.done) == (3, False)
    assert run_of(define(), report(1, total=5), report(2, total=2)).done


def test_repeated_step_replaces_the_earlier_one(define: Define) -> None:
    """After a repeat there is one step with that number, with the latest content."""
    step_report = StepReport(WorkflowStep(1, "better"), total=3)
    run = run_of(define(), report(1, total=3), report(2), step_report)
    assert [(step.number, step.text) for step in run.steps] == [(1, "better"), (2, "step 2")]


def test_values_carry_over_until_they_change(define: Define) -> None:
    """A step that omits a value keeps the latest one."""
    run = run_of(define(), report(1, total=3, confidence="low", model="auto"), report(2, confidence="high"), report(3))
    assert (run.confidence, run.values["model"]) == ("high", "auto")


def test_step_1_after_the_end_starts_a_new_run(define: Define) -> None:
    """A second run in a conversation starts empty. A later step number continues the first run."""
    first = run_of(define(), report(1, confidence="certain"))
    assert add_step(define(), first, report(1)) == WorkflowRun(steps=(WorkflowStep(1, "step 1"),), done=True)
    assert [step.number for step in add_step(define(), first, report(2)).steps] == [1, 2]


@pytest.mark.parametrize(
    ("expert", "message", "decision"),
    [
        ({}, {}, Consult()),
        ({}, {"use_assistant_model": True}, Consult()),
        ({}, {"use_assistant_model": False}, Conclude("use_assistant_model is false")),
        ({}, {"confidence": "certain"}, Conclude("the confidence is certain")),
        ({}, {"confidence": "almost_certain"}, Consult()),
        ({}, {"confidence": "certain", "use_assistant_model": True}, Consult()),
        ({"skip_when_certain": False}, {"confidence": "certain"}, Consult()),
        ({"by_default": False}, {}, Conclude("use_assistant_model is false by default")),
        ({"by_default": False}, {"use_assistant_model": True}, Consult()),
    ],
)
def test_when_the_expert_is_asked(define: Define, expert: Any, message: Any, decision: Any) -> None:
    """The caller's setting overrides the definition. If the expert is not asked, the decision has a reason."""
    definition = define(expert={"prompt": "Look.", **expert})
    assert next_action(definition, run_of(definition, report(1, **message))) == decision


def test_a_required_argument_is_checked_in_its_step(define: Define) -> None:
    """It is required only in its step, and an earlier step can supply it."""
    definition = define(arguments={"scope": {"type": "string", "description": "Where.", "required_on": 2}})
    first = run_of(definition, report(1, total=3))
    with pytest.raises(InvalidArgumentsError, match=r"inspect: scope: required in step 2: Where\.") as caught:
        add_step(definition, first, report(2))
    assert caught.value.details == {"fields": {"scope": "required in step 2: Where."}}
    add_step(definition, first, report(2, scope="here"))
    add_step(definition, run_of(definition, report(1, total=3, scope="here")), report(2))
    add_step(definition, first, report(3))


def test_default_step_number(define: Define) -> None:
    """A step without a number is the first, or follows the last one. After the end of a run it is the first again."""
    assert next_number(None) == 1
    assert next_number(run_of(define(), report(1, total=4), report(3))) == 4
    assert next_number(run_of(define(), report(1))) == 1


REPORTS = st.builds(
    lambda number, total, more, findings, reported: StepReport(
        WorkflowStep(number, "look", findings=findings), total=total, more=more, values=reported
    ),
    st.integers(1, 9),
    st.none() | st.integers(1, 9),
    st.none() | st.booleans(),
    st.text(max_size=5),
    st.fixed_dictionaries(
        {}, optional={"use_assistant_model": st.booleans(), "confidence": st.sampled_from(["low", "certain"])}
    ),
)


@given(st.lists(REPORTS, min_size=1, max_size=12), st.booleans(), st.booleans())
def test_invariants_hold_for_any_reports(
    define: Define, reports: list[StepReport], by_default: bool, skip: bool
) -> None:
    """Steps are sorted and unique, none is lost during a run, the total is at least the step number, and the expert is
    asked only in a last step.
    """
    definition = define(expert={"prompt": "Look.", "by_default": by_default, "skip_when_certain": skip})
    before: WorkflowRun | None = None
    for report in reports:
        run = add_step(definition, before, report)
        numbers = [step.number for step in run.steps]
        assert numbers == sorted(set(numbers))
        assert run.total >= report.step.number
        goes_on = before is not None and not (before.done and report.step.number == 1)
        stored = {step.number: step for step in before.steps} if before is not None and goes_on else {}
        assert {step.number: step for step in run.steps} == stored | {report.step.number: report.step}
        decision = next_action(definition, run)
        assert isinstance(decision, Continue) is not run.done
        if report.more is not None:
            assert run.done is not report.more
        if isinstance(decision, Consult):
            assert run.values.get("use_assistant_model", by_default)
        before = run


def test_backtracking_discards_the_steps_from_a_number_on(define: Define) -> None:
    """Their findings are gone, and their numbers are not reported as missing."""
    definition = define()
    run = run_of(definition, *(report(number, total=5) for number in (1, 2, 3)))
    run = add_step(definition, run, replace(report(4, total=5), backtrack=2))
    assert [step.number for step in run.steps] == [1, 4]
    assert run.discarded == (2, 3)
    assert "step_number" not in missing_fields(definition, run, 4)
    again = add_step(definition, run, report(2, total=5))
    assert ([step.number for step in again.steps], again.discarded) == ([1, 2, 4], (3,))


def test_the_user_decides_before_the_run_goes_on(define: Define) -> None:
    """A first step with an open question never ends the run; a caller that ignores the question can still finish."""
    mode = {
        "type": "string", "description": "How.", "choices": ["deep", "wide", "ask"], "default": "ask",
        "ask_user": {"value": "ask", "text": "Deep or wide?"},
    }  # fmt: skip
    definition = define(arguments={"mode": mode})
    question = AskUser("mode", "Deep or wide?", ("deep", "wide"))
    first = run_of(definition, report(1))
    assert (first.done, next_action(definition, first)) == (False, question)
    assert next_action(definition, add_step(definition, first, report(2, total=3))) == question
    assert next_action(definition, add_step(definition, first, report(2, total=2, mode="deep"))) == Consult()
    assert next_action(definition, add_step(definition, first, report(2, total=2))) == Consult()


def test_a_run_that_begins_with_a_later_step_needs_the_arguments_of_the_first(define: Define) -> None:
    definition = define(arguments={"scope": {"type": "string", "description": "Where.", "required_on": 1}})
    with pytest.raises(InvalidArgumentsError, match="scope: required in step 1"):
        add_step(definition, None, report(3))
