"""The answers of a workflow tool, after each step and at the end, as text and data. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...completions import OmittedContent, QuestionResult
from ...tool import ToolOutput
from .step_engine import AskUser
from .step_guidance import missing_fields, suggestions
from .workflow_definition import WorkflowDefinition
from .workflow_result import Unstructured, parse_result, result_fields, result_text
from .workflow_run import WorkflowIssue, WorkflowRun


def in_progress_answer(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    number: int,
    continuation_id: str,
    question: AskUser | None = None,
    omitted: Sequence[OmittedContent] = (),
) -> ToolOutput:
    """Returns the answer after a step that is not the last: a question to the user, and what to examine next."""
    next_actions, missing = suggestions(definition, run, number), missing_fields(definition, run, number)
    if question is not None:
        words = " or ".join(question.choices)
        next_actions.insert(0, f"Ask the user: {question.text} Send the answer as {question.argument}: {words}.")
    data = _head(run, number, continuation_id) | {"next": next_actions, "missing": missing, "so_far": _so_far(run)}
    if question is not None:
        data["question"] = {"argument": question.argument, "text": question.text, "choices": list(question.choices)}
    if omitted:
        data["omitted"] = [part.as_data() for part in omitted]
    lines = [f"{definition.name}: recorded step {number} of {run.total}. No model was asked yet.", "", "Next:"]
    lines += [f"- {action}" for action in next_actions]
    if missing:
        lines += ["", "Missing so far:", *(f"- {field}: {what}" for field, what in missing.items())]
    if omitted:
        lines += ["", "Not stored:", *(f"- {part.what}: {part.reason}" for part in omitted)]
    lines += ["", f'Then call {definition.name} with step_number {number + 1} and continuation_id "{continuation_id}".']
    return ToolOutput("\n".join(lines), data)


def concluded_answer(
    definition: WorkflowDefinition, run: WorkflowRun, number: int, continuation_id: str, reason: str
) -> ToolOutput:
    """Returns the answer after a last step without an expert call: the caller's own findings."""
    result = {
        "summary": next((step.findings for step in reversed(run.steps) if step.findings), run.steps[-1].text),
        "findings": [_finding(issue) for issue in run.issues],
    }
    steps = [
        {"number": step.number, "step": step.text, **({"findings": step.findings} if step.findings else {})}
        | step.tool_arguments
        for step in run.steps
    ]
    data = _end(definition, run, number, continuation_id, expert_called=False)
    data |= {**result, "steps": steps, "notice": f"no expert was asked: {reason}"}
    listed = "\n".join(f"{step.number}. {step.text}" for step in run.steps)
    title = f"{definition.name} is complete; {data['notice']}. Steps:"
    has_findings = any(step.findings or step.issues for step in run.steps)
    findings = [result_text(result_fields(definition), result)] if has_findings else []
    return ToolOutput("\n\n".join([title, listed, *findings]), data)


def expert_answer(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    number: int,
    continuation_id: str,
    reply: QuestionResult,
    unreadable: Sequence[OmittedContent],
) -> ToolOutput:
    """Returns the answer after a last step with an expert call. A reply that does not fit the schema is returned as
    text.
    """
    data = _end(definition, run, number, continuation_id, expert_called=True) | reply.data()
    if unreadable:
        data["omitted"] = [*data.get("omitted", ()), *(part.as_data() for part in unreadable)]
    fields = result_fields(definition)
    result = parse_result(fields, reply.text)
    if isinstance(result, Unstructured):
        return ToolOutput(
            f"{reply.text}\n\n(Not structured: {result.reason}.)",
            data | {"text": reply.text, "unstructured": result.reason},
        )
    return ToolOutput(result_text(fields, result), data | result)


def _head(run: WorkflowRun, number: int, continuation_id: str) -> dict[str, Any]:
    return {
        "status": "complete" if run.done else "in_progress",
        "step_number": number,
        "total_steps": run.total,
        "next_step_required": not run.done,
        "continuation_id": continuation_id,
    }


def _end(
    definition: WorkflowDefinition, run: WorkflowRun, number: int, continuation_id: str, *, expert_called: bool
) -> dict[str, Any]:
    data = _head(run, number, continuation_id) | {"expert_called": expert_called}
    if missing := missing_fields(definition, run, number):
        data["missing"] = missing
    if run.issues:
        data["issues_found"] = [issue.as_data() for issue in run.issues]
    return data


def _so_far(run: WorkflowRun) -> Mapping[str, Any]:
    return {
        "steps": [step.number for step in run.steps],
        "files_checked": run.files_checked,
        "relevant_files": run.relevant_files,
        "issues_found": dict(Counter(issue.severity or "unrated" for issue in run.issues)),
        "confidence": run.confidence,
    }


def _finding(issue: WorkflowIssue) -> dict[str, Any]:
    """Converts a caller's issue to the shape of an expert's finding."""
    finding = issue.as_data()
    severity = {"severity": issue.severity} if issue.severity else {}
    return {**severity, "title": finding.pop("description"), **finding}
