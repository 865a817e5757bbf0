"""The step engine: what becomes of a run, whatever is reported, and when the expert is asked."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools.builtin.workflow.step_engine import (
    Conclude,
    Consult,
    Continue,
    StepReport,
    add_step,
    next_action,
    next_number,
)
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition
from toold.tools.builtin.workflow.workflow_run import WorkflowRun, WorkflowStep

Define = Callable[..., WorkflowDefinition]


def report(number: int, *, total: int | None = None, more: bool | None = None, **said: Any) -> StepReport:
    return StepReport(WorkflowStep(number, f"step {number}"), total=total, more=more, values=said)


def run_of(definition: WorkflowDefinition, *reports: StepReport) -> WorkflowRun:
    run = None
    for one in reports:
        run = add_step(definition, run, one)
    assert run is not None
    return run


def test_a_step_alone_is_a_whole_run(define: Define) -> None:
    """Nothing said of numbers, the first step is the last, and the expert is asked."""
    run = run_of(define(), report(1))
    assert (run.done, run.total) == (True, 1)
    assert next_action(define(), run) == Consult()


@pytest.mark.parametrize(
    ("number", "total", "more", "done"),
    [(1, 3, None, False), (3, 3, None, True), (2, 3, False, True), (3, 3, True, False), (5, 3, None, True)],
)
def test_when_a_run_is_done(define: Define, number: int, total: int, more: bool | None, done: bool) -> None:
    """The caller's value decides; without one the step numbers do."""
    run = run_of(define(), report(number, total=total, more=more))
    assert run.done is done
    assert run.total == max(number, total)


def test_the_number_of_steps_holds_until_it_is_said_anew(define: Define) -> None:
    """Values of earlier steps carry over."""
    run = run_of(define(), report(1, total=3), report(2))
    assert (run.total, run.done) == (3, False)
    assert run_of(define(), report(1, total=5), report(2, total=2)).done


def test_a_step_that_is_sent_again_takes_its_own_place(define: Define) -> None:
    """A repeat after a lost answer leaves one step of that number, as it was last reported."""
    again = StepReport(WorkflowStep(1, "better"), total=3)
    run = run_of(define(), report(1, total=3), report(2), again)
    assert [(step.number, step.text) for step in run.steps] == [(1, "better"), (2, "step 2")]


def test_what_goes_on_is_the_latest_that_was_said(define: Define) -> None:
    """A step that says nothing of it leaves it as it was."""
    run = run_of(define(), report(1, total=3, confidence="low", model="auto"), report(2, confidence="high"), report(3))
    assert (run.confidence, run.values["model"]) == ("high", "auto")


def test_step_1_after_the_end_begins_anew(define: Define) -> None:
    """A second run in a conversation starts empty; a later step number continues the first."""
    first = run_of(define(), report(1, confidence="certain"))
    assert add_step(define(), first, report(1)) == WorkflowRun(steps=(WorkflowStep(1, "step 1"),), done=True)
    assert [step.number for step in add_step(define(), first, report(2)).steps] == [1, 2]


@pytest.mark.parametrize(
    ("expert", "said", "decision"),
    [
        ({}, {}, Consult()),
        ({}, {"use_assistant_model": True}, Consult()),
        ({}, {"use_assistant_model": False}, Conclude("use_assistant_model is false")),
        ({}, {"confidence": "certain"}, Consult()),
        ({"skip_when_certain": True}, {"confidence": "certain"}, Conclude("the confidence is certain")),
        ({"skip_when_certain": True}, {"confidence": "almost_certain"}, Consult()),
        ({"skip_when_certain": True}, {"confidence": "certain", "use_assistant_model": True}, Consult()),
        ({"by_default": False}, {}, Conclude("use_assistant_model is false by default")),
        ({"by_default": False}, {"use_assistant_model": True}, Consult()),
    ],
)
def test_when_the_expert_is_asked(define: Define, expert: Any, said: Any, decision: Any) -> None:
    """The caller's word counts before the definition's, and where nobody is asked it is said why."""
    definition = define(expert={"prompt": "Look.", **expert})
    assert next_action(definition, run_of(definition, report(1, **said))) == decision


def test_a_required_argument_is_checked_in_its_step(define: Define) -> None:
    """It is required in its step only, and an earlier step may have given it."""
    definition = define(arguments={"scope": {"type": "string", "description": "Where.", "required_on": 2}})
    first = run_of(definition, report(1, total=3))
    with pytest.raises(InvalidArgumentsError, match=r"inspect: scope: required in step 2: Where\.") as caught:
        add_step(definition, first, report(2))
    assert caught.value.details == {"fields": {"scope": "required in step 2: Where."}}
    add_step(definition, first, report(2, scope="here"))
    add_step(definition, run_of(definition, report(1, total=3, scope="here")), report(2))
    add_step(definition, first, report(3))


def test_the_next_number(define: Define) -> None:
    """A step that says none is the first, or comes after the last; after the end the first again."""
    assert next_number(None) == 1
    assert next_number(run_of(define(), report(1, total=4), report(3))) == 4
    assert next_number(run_of(define(), report(1))) == 1


REPORTS = st.builds(
    lambda number, total, more, findings, said: StepReport(
        WorkflowStep(number, "look", findings=findings), total=total, more=more, values=said
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
def test_whatever_is_reported(define: Define, reports: list[StepReport], by_default: bool, skip: bool) -> None:
    """Steps stay in order and each once, none is lost while a run goes on, the total is never passed, and the expert
    is asked on a last step alone."""
    definition = define(expert={"prompt": "Look.", "by_default": by_default, "skip_when_certain": skip})
    before: WorkflowRun | None = None
    for one in reports:
        run = add_step(definition, before, one)
        numbers = [step.number for step in run.steps]
        assert numbers == sorted(set(numbers))
        assert run.total >= one.step.number
        goes_on = before is not None and not (before.done and one.step.number == 1)
        kept = {step.number: step for step in before.steps} if before is not None and goes_on else {}
        assert {step.number: step for step in run.steps} == kept | {one.step.number: one.step}
        decision = next_action(definition, run)
        assert isinstance(decision, Continue) is not run.done
        if one.more is not None:
            assert run.done is not one.more
        if isinstance(decision, Consult):
            assert run.values.get("use_assistant_model", by_default)
        before = run
