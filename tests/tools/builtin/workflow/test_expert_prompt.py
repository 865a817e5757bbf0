"""The expert's prompt for a run."""

from collections.abc import Callable

from toold.tools.builtin.workflow.expert_prompt import (
    INSTRUCTIONS,
    earlier_turns,
    expert_instructions,
    expert_prompt,
    step_text,
)
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition
from toold.tools.builtin.workflow.workflow_run import WorkflowIssue, WorkflowRun, WorkflowStep
from toold.tools.conversation import Turn

Define = Callable[..., WorkflowDefinition]


def test_a_single_step_has_only_the_task(define: Define) -> None:
    """The prompt has no empty sections."""
    assert expert_prompt(define(), WorkflowRun(steps=(WorkflowStep(1, "Is it right?"),))) == "# Task\n\nIs it right?"


def test_prompt_contains_everything_that_was_reported(define: Define) -> None:
    """The prompt has task, options, steps, issues with their location, hypothesis, confidence and examined files."""
    arguments = {
        "mode": {"type": "string", "description": "How.", "default": "wide"},
        "areas": {"type": "strings", "description": "Where."},
        "diff": {"type": "string", "description": "What."},
        "unsaid": {"type": "string", "description": "Nothing."},
        "branch": {"type": "string", "description": "Which.", "per_step": True},
    }
    run = WorkflowRun(
        steps=(
            WorkflowStep(1, "Is it right?", findings="It is large.", files_checked=("a.py",)),
            WorkflowStep(2, "Looked closer.", findings="It leaks.", issues=(WorkflowIssue("high", "leak", "a.py", 3),)),
            WorkflowStep(
                3,
                "Another way.",
                issues=(WorkflowIssue(None, "typo", more={"impact": "small"}),),
                tool_arguments={"branch": "b"},
            ),
            WorkflowStep(4, "Named it.", relevant_context=("A.run", "close")),
        ),
        values={"hypothesis": "No close.", "confidence": "high", "areas": ["x", "y"], "diff": "-a\n+b"},
    )
    assert expert_prompt(define(arguments=arguments), run) == (
        "# Task\n\nIs it right?\n\n"
        '# Options\n\n- mode: wide\n- areas: ["x", "y"]\n\n'
        "# diff\n\n-a\n+b\n\n"
        "# Investigation\n\n"
        "## Step 1\n\nIt is large.\n\n"
        "## Step 2\n\nLooked closer.\n\nIt leaks.\n\n"
        "## Step 3\n\n- branch: b\n\nAnother way.\n\n"
        "## Step 4\n\nNamed it.\n\n"
        "# Issues found by the caller\n\n- [high] leak (a.py:3)\n- typo\n  impact: small\n\n"
        "# Hypothesis\n\nNo close.\n\n"
        "The caller's confidence: high.\n\n"
        "Functions, methods and classes that matter: A.run, close.\n\n"
        "Files that the caller examined: a.py."
    )


def test_the_tools_instructions_precede_the_common_ones(define: Define) -> None:
    assert expert_instructions(define()) == f"You look at things.\n\n{INSTRUCTIONS}"


def test_stored_step_contains_its_findings() -> None:
    """Another tool that continues the conversation sees the findings and issues of the step."""
    step = WorkflowStep(2, "Looked.", findings="It leaks.", issues=(WorkflowIssue("high", "leak", "a.py"),))
    assert step_text(step) == "Step 2: Looked.\n\nIt leaks.\n\n- [high] leak (a.py)"


def test_history_excludes_the_current_run() -> None:
    """The prompt has the steps of the current run. Earlier turns and those of other tools are history."""
    turns = [
        Turn("user", "old step", tool="debug"),
        Turn("assistant", "old result", tool="debug"),
        Turn("user", "Hi", tool="chat"),
        Turn("user", "step 1", tool="debug"),
        Turn("assistant", "Hello", tool="chat"),
        Turn("user", "step 2", tool="debug"),
    ]
    assert [turn.text for turn in earlier_turns(turns, "debug")] == ["old step", "old result", "Hi", "Hello"]
    assert [turn.text for turn in earlier_turns(turns, "analyze")] == [turn.text for turn in turns]
