"""The answers of a workflow tool, as text and data."""

import json
from collections.abc import Callable
from typing import Any

from toold.providers import Completion, ModelCatalog
from toold.tools import Answer
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


def asked(text: str, **more: Any) -> QuestionResult:
    model = ModelCatalog.load().resolve("glm-4.6")
    return QuestionResult(Completion(text, "glm-4.6", "stop", None), model, **more)


def test_an_answer_in_progress_says_how_to_continue(define: Define) -> None:
    """It has suggestions, missing arguments, the progress so far, and the arguments of the next step."""
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


def test_without_an_expert_the_callers_own_findings_are_the_result(define: Define) -> None:
    """They have the shape of the expert's findings, and a notice says why the expert was not asked."""
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


def test_a_plan_has_what_each_step_says_of_itself(define: Define) -> None:
    """Revisions and branches stand with their steps; without findings the last step is the summary."""
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
    answer = expert_answer(definition, DONE, 2, "thread-1", asked(text, **more), unread)
    assert isinstance(answer, Answer)
    assert isinstance(answer.data, dict)
    return answer.text or "", answer.data


def test_the_experts_result_stands_beside_who_gave_it(define: Define) -> None:
    """Findings, the model, and the caller's own issues under their own name."""
    finding = {"severity": "low", "title": "Slow", "explanation": "A loop."}
    text, data = consult(define(), json.dumps({"summary": "Slow.", "findings": [finding]}))
    assert (data["status"], data["expert_called"], data["summary"]) == ("complete", True, "Slow.")
    assert data["findings"] == [finding]
    assert (data["model"], data["provider"], data["finish_reason"]) == ("glm-4.6", "glm", "stop")
    assert data["issues_found"][0]["description"] == "It leaks"
    assert text == "Slow.\n\n1. [low] Slow\n   A loop."
    assert "unstructured" not in data


def test_an_answer_without_form_is_passed_on(define: Define) -> None:
    """Its words stay, and both the text and the data say that they could not be structured."""
    text, data = consult(define(), "There is a leak.")
    assert text == "There is a leak.\n\n(Not structured: the answer has no JSON object.)"
    assert (data["text"], data["unstructured"]) == ("There is a leak.", "the answer has no JSON object")
    assert not {"summary", "findings"} & data.keys()


def test_what_the_expert_was_not_given_is_named(define: Define) -> None:
    """Files that did not fit, and files that could not be read."""
    _, data = consult(define(), "x", OmittedContent("b.py", "is gone"), omitted=(OmittedContent("a.py", "no room"),))
    assert data["omitted"] == [{"what": "a.py", "reason": "no room"}, {"what": "b.py", "reason": "is gone"}]


def test_what_was_missing_to_the_end_is_told(define: Define) -> None:
    """The caller learns why the answer may be poor."""
    definition = define(expected=[{"field": "hypothesis", "text": "what you think"}])
    assert consult(definition, "x")[1]["missing"] == {"hypothesis": "what you think"}
