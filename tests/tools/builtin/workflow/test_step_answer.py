"""The answers of a workflow tool, as text and data."""

import json
from collections.abc import Callable
from typing import Any

from toold.providers import Completion, ModelCatalog
from toold.tools import ToolOutput
from toold.tools.builtin.workflow.step_answer import concluded_answer, expert_answer, in_progress_answer
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition
from toold.tools.builtin.workflow.workflow_run import WorkflowIssue, WorkflowRun, WorkflowStep
from toold.tools.completions import OmittedContent, QuestionResult

Define = Callable[..., WorkflowDefinition]
LEAK = WorkflowIssue("high", "It leaks", "a.py", 12)
RUN = WorkflowRun(
    steps=(WorkflowStep(1, "Look."), WorkflowStep(2, "Looked.", "A leak.", ("b.py",), ("a.py",), (LEAK,))), total=3
)
DONE = WorkflowRun(steps=RUN.steps, total=2, done=True)


def result_of(text: str, **more: Any) -> QuestionResult:
    model = ModelCatalog.load().resolve("glm-4.6")
    return QuestionResult(Completion(text, "glm-4.6", "stop", None), model, **more)


def test_answer_in_progress_explains_how_to_continue(define: Define) -> None:
    """The answer has suggestions, missing arguments, the progress so far, and the arguments of the next step."""
    definition = define(expected=[{"field": "hypothesis", "text": "what you think"}])
    answer = in_progress_answer(definition, RUN, 2, "thread-1")
    assert answer.data == {
        "status": "in_progress",
        "step_number": 2,
        "total_steps": 3,
        "next_step_required": True,
        "continuation_id": "thread-1",
        "next": ["Look closer."],
        "missing": {"hypothesis": "what you think"},
        "so_far": {
            "steps": [1, 2],
            "files_checked": ["b.py"],
            "relevant_files": ["a.py"],
            "issues_found": {"high": 1},
            "confidence": "exploring",
        },
    }
    assert answer.text == (
        "inspect: recorded step 2 of 3. No model was asked yet.\n\nNext:\n- Look closer.\n\n"
        "Missing so far:\n- hypothesis: what you think\n\n"
        'Then call inspect with step_number 3 and continuation_id "thread-1".'
    )


def test_callers_findings_are_the_result_without_an_expert(define: Define) -> None:
    """They have the format of the expert's findings, and a notice says why the expert was not asked."""
    answer = concluded_answer(define(), DONE, 2, "thread-1", "the confidence is certain")
    assert answer.data == {
        "status": "complete",
        "step_number": 2,
        "total_steps": 2,
        "next_step_required": False,
        "continuation_id": "thread-1",
        "expert_called": False,
        "issues_found": [{"severity": "high", "description": "It leaks", "file": "a.py", "line": 12}],
        "summary": "A leak.",
        "findings": [{"severity": "high", "title": "It leaks", "file": "a.py", "line": 12}],
        "steps": [{"number": 1, "step": "Look."}, {"number": 2, "step": "Looked.", "findings": "A leak."}],
        "notice": "no expert was asked: the confidence is certain",
    }
    assert answer.text == (
        "inspect is complete; no expert was asked: the confidence is certain. Steps:\n\n1. Look.\n2. Looked.\n\n"
        "A leak.\n\n1. [high] It leaks (a.py:12)"
    )


def test_plan_lists_the_arguments_of_each_step(define: Define) -> None:
    """Each step has its own arguments, such as its branch. Without findings the last step is the summary."""
    run = WorkflowRun(steps=(WorkflowStep(1, "Go.", tool_arguments={"branch_id": "b"}),), done=True)
    answer = concluded_answer(define(), run, 1, "thread-1", "use_assistant_model is false by default")
    data = answer.data
    assert isinstance(data, dict)
    assert (answer.text or "").endswith("Steps:\n\n1. Go.")
    assert data["steps"] == [{"number": 1, "step": "Go.", "branch_id": "b"}]
    assert (data["summary"], data["findings"]) == ("Go.", [])


def consult(
    definition: WorkflowDefinition, text: str, *unread: OmittedContent, **more: Any
) -> tuple[str, dict[str, Any]]:
    answer = expert_answer(definition, DONE, 2, "thread-1", result_of(text, **more), unread)
    assert isinstance(answer, ToolOutput)
    assert isinstance(answer.data, dict)
    return answer.text or "", answer.data


def test_experts_result_names_the_model(define: Define) -> None:
    """The answer has the expert's findings, the model, and the caller's own issues in a separate field."""
    finding = {"severity": "low", "title": "Slow", "explanation": "A loop."}
    text, data = consult(define(), json.dumps({"summary": "Slow.", "findings": [finding]}))
    assert (data["status"], data["expert_called"], data["summary"]) == ("complete", True, "Slow.")
    assert data["findings"] == [finding]
    assert (data["model"], data["provider"], data["finish_reason"]) == ("glm-4.6", "glm", "stop")
    assert data["issues_found"][0]["description"] == "It leaks"
    assert text == "Slow.\n\n1. [low] Slow\n   A loop."
    assert "unstructured" not in data


def test_unstructured_answer_is_returned_as_text(define: Define) -> None:
    """The text is kept, and both text and data report that it could not be structured."""
    text, data = consult(define(), "There is a leak.")
    assert text == "There is a leak.\n\n(Not structured: the answer has no JSON object.)"
    assert (data["text"], data["unstructured"]) == ("There is a leak.", "the answer has no JSON object")
    assert not {"summary", "findings"} & data.keys()


def test_omitted_files_are_reported(define: Define) -> None:
    """Files that did not fit and files that could not be read are listed."""
    _, data = consult(define(), "x", OmittedContent("b.py", "is gone"), omitted=(OmittedContent("a.py", "no room"),))
    assert data["omitted"] == [{"what": "a.py", "reason": "no room"}, {"what": "b.py", "reason": "is gone"}]


def test_missing_arguments_are_reported_at_the_end(define: Define) -> None:
    """The expected arguments that were never given are listed."""
    definition = define(expected=[{"field": "hypothesis", "text": "what you think"}])
    assert consult(definition, "x")[1]["missing"] == {"hypothesis": "what you think"}
