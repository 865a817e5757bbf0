"""A run's accumulated values, and their storage in a conversation's state."""

import json

from hypothesis import given
from hypothesis import strategies as st
from toold.tools.builtin.workflow.workflow_run import WorkflowIssue, WorkflowRun, WorkflowStep, stored_run, with_run

NAMES = st.text(max_size=8)
ISSUES = st.builds(
    WorkflowIssue, st.sampled_from(["high", "low"]), NAMES, st.none() | NAMES, st.none() | st.integers(1, 99)
)
STEPS = st.builds(
    WorkflowStep,
    number=st.integers(1, 99),
    text=NAMES,
    findings=NAMES,
    files_checked=st.tuples(NAMES),
    relevant_files=st.tuples(NAMES),
    issues=st.tuples(ISSUES),
    tool_arguments=st.dictionaries(NAMES, NAMES | st.booleans() | st.integers(-9, 9) | st.lists(NAMES), max_size=2),
)
RUNS = st.builds(
    WorkflowRun,
    steps=st.lists(STEPS, max_size=4).map(tuple),
    total=st.integers(1, 9),
    values=st.dictionaries(NAMES, NAMES, max_size=2),
    done=st.booleans(),
)


@given(RUNS)
def test_run_survives_storage(run: WorkflowRun) -> None:
    """A run that is stored as JSON and read again is equal."""
    state = json.loads(json.dumps(with_run(None, "debug", run)))
    assert stored_run(state, "debug") == run


def test_tools_do_not_see_each_others_steps() -> None:
    """Each tool stores its run under its own name and keeps the state of other tools."""
    state = with_run({"other": {"x": 1}}, "debug", WorkflowRun(total=2))
    assert state["other"] == {"x": 1}
    assert stored_run(state, "debug") == WorkflowRun(total=2)
    assert stored_run(state, "analyze") is None
    assert stored_run(None, "debug") is None


def test_files_of_the_latest_step_come_first() -> None:
    """Files that do not fit are omitted from the end, so the latest step's files come first."""
    steps = (
        WorkflowStep(1, "a", relevant_files=("a.py", "b.py")),
        WorkflowStep(2, "b", relevant_files=("c.py", "a.py")),
    )
    assert WorkflowRun(steps=steps).relevant_files == ["c.py", "a.py", "b.py"]


def test_repeated_issue_is_counted_once_with_its_latest_severity() -> None:
    """An issue with the same location and description replaces the earlier one."""
    steps = (
        WorkflowStep(1, "a", issues=(WorkflowIssue("low", "leak", "a.py", 3), WorkflowIssue("low", "typo"))),
        WorkflowStep(2, "b", issues=(WorkflowIssue("high", "leak", "a.py", 3),)),
    )
    assert WorkflowRun(steps=steps).issues == [WorkflowIssue("high", "leak", "a.py", 3), WorkflowIssue("low", "typo")]
