"""Suggestions and missing arguments between two steps."""

from collections.abc import Callable
from typing import Any

import pytest
from toold.tools.builtin.workflow.step_guidance import argument_value, missing_fields, suggestions
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition
from toold.tools.builtin.workflow.workflow_run import WorkflowIssue, WorkflowRun, WorkflowStep

Define = Callable[..., WorkflowDefinition]
MODE = {"mode": {"type": "string", "description": "How.", "choices": ["deep", "wide"], "default": "wide"}}


def run_of(*numbers: int, **message: Any) -> WorkflowRun:
    return WorkflowRun(steps=tuple(WorkflowStep(number, "look") for number in numbers), total=9, values=message)


@pytest.mark.parametrize(
    ("rule", "number", "reported", "is_told"),
    [
        ({}, 7, {}, True),
        ({"step": 2}, 2, {}, True),
        ({"step": 2}, 3, {}, False),
        ({"from_step": 2}, 1, {}, False),
        ({"from_step": 2}, 3, {}, True),
        ({"confidence": ["low", "exploring"]}, 1, {}, True),
        ({"confidence": ["low"]}, 1, {}, False),
        ({"confidence": ["low"]}, 1, {"confidence": "low"}, True),
        ({"where": {"mode": "wide"}}, 1, {}, True),
        ({"where": {"mode": "deep"}}, 1, {}, False),
        ({"where": {"mode": "deep"}}, 1, {"mode": "deep"}, True),
        ({"step": 1, "where": {"mode": "deep"}}, 2, {"mode": "deep"}, False),
    ],
)
def test_guidance_applies_if_all_its_conditions_hold(
    define: Define, rule: Any, number: int, reported: Any, is_told: bool
) -> None:
    """A rule can depend on the step, the confidence and the tool's own arguments."""
    definition = define(guidance=[{"text": "Look there.", **rule}], arguments=MODE)
    assert ("Look there." in suggestions(definition, run_of(number, **reported), number)) is is_told


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (run_of(1, confidence="certain"), "send the last step now with next_step_required false"),
        (WorkflowRun(steps=(WorkflowStep(3, "look"),), total=3), "raise total_steps, or finish with the next step"),
    ],
)
def test_suggestions_explain_how_to_finish(define: Define, run: WorkflowRun, says: str) -> None:
    """If the caller is certain or has reached the last step, a suggestion explains how to finish."""
    assert says in suggestions(define(), run, run.steps[-1].number)[-1]


@pytest.mark.parametrize(
    ("field", "run"),
    [
        ("findings", WorkflowRun(steps=(WorkflowStep(2, "x", findings="f"),))),
        ("files_checked", WorkflowRun(steps=(WorkflowStep(2, "x", files_checked=("a",)),))),
        ("relevant_files", WorkflowRun(steps=(WorkflowStep(2, "x", relevant_files=("a",)),))),
        ("issues_found", WorkflowRun(steps=(WorkflowStep(2, "x", issues=(WorkflowIssue("low", "i"),)),))),
        ("hypothesis", WorkflowRun(steps=(WorkflowStep(2, "x"),), values={"hypothesis": "h"})),
        ("mode", WorkflowRun(steps=(WorkflowStep(2, "x", tool_arguments={"mode": "deep"}),))),
    ],
)
def test_expected_field_is_missing_until_it_is_given(define: Define, field: str, run: WorkflowRun) -> None:
    """A field is missing from its step on, until any step supplies it."""
    definition = define(expected=[{"field": field, "from_step": 2, "text": "please"}], arguments=MODE)
    assert missing_fields(definition, run_of(1), 1) == {}
    assert missing_fields(definition, run_of(2), 2) == {field: "please"}
    assert missing_fields(definition, run, 2) == {}


def test_skipped_steps_are_reported(define: Define) -> None:
    """A gap in the step numbers is reported but not an error. A run can begin at any number."""
    assert missing_fields(define(), run_of(1, 2, 5, 7), 7) == {"step_number": "not reported: step 3 to 4, 6"}
    assert missing_fields(define(), run_of(4, 5), 5) == {}


def test_large_gap_is_reported_as_a_range(define: Define) -> None:
    """A gap of any size is reported as one range."""
    assert missing_fields(define(), run_of(1, 10**15), 10**15) == {
        "step_number": f"not reported: step 2 to {10**15 - 1}"
    }


def test_per_step_argument_has_its_latest_value(define: Define) -> None:
    """The latest step with a value determines it. Without any value, the default applies."""
    own = {"mode": {**MODE["mode"], "per_step": True}}
    run = WorkflowRun(steps=(WorkflowStep(1, "a", tool_arguments={"mode": "deep"}), WorkflowStep(2, "b")))
    assert argument_value(define(arguments=own), run, "mode") == "deep"
    assert argument_value(define(arguments=own), run_of(1), "mode") == "wide"
