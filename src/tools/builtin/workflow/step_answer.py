"""What a caller is answered: after a step, and at the end, in words and as data. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...completions import OmittedContent, QuestionResult
from ...tool import Answer
from .step_guidance import missing, next_looks
from .workflow_definition import WorkflowDefinition
from .workflow_result import Unstructured, parse, result_fields, words
from .workflow_run import WorkflowIssue, WorkflowRun


def go_on(definition: WorkflowDefinition, run: WorkflowRun, number: int, continuation_id: str) -> Answer:
    """After a step that others follow: what to look at next."""
    looks, absent = next_looks(definition, run, number), missing(definition, run, number)
    data = _head(run, number, continuation_id) | {"next": looks, "missing": absent, "so_far": _so_far(run)}
    lines = [f"{definition.name}: step {number} of {run.total} is noted. Nobody was asked yet.", "", "Next:"]
    lines += [f"- {look}" for look in looks]
    if absent:
        lines += ["", "Missing so far:", *(f"- {field}: {what}" for field, what in absent.items())]
    lines += ["", f'Then call {definition.name} with step_number {number + 1} and continuation_id "{continuation_id}".']
    return Answer("\n".join(lines), data)


def concluded(definition: WorkflowDefinition, run: WorkflowRun, number: int, continuation_id: str, why: str) -> Answer:
    """After a last step that asks no expert: what the caller found, put together."""
    result = {
        "summary": next((step.findings for step in reversed(run.steps) if step.findings), run.steps[-1].text),
        "findings": [_finding(issue) for issue in run.issues],
    }
    steps = [
        {"number": step.number, "step": step.text, **({"findings": step.findings} if step.findings else {}), **step.own}
        for step in run.steps
    ]
    data = _end(definition, run, number, continuation_id, expert_called=False)
    data |= {**result, "steps": steps, "notice": f"no expert was asked: {why}"}
    listed = "\n".join(f"{step.number}. {step.text}" for step in run.steps)
    title = f"{definition.name} is complete; {data['notice']}. The steps:"
    found = any(step.findings or step.issues for step in run.steps)
    told = [words(result_fields(definition), result)] if found else []
    return Answer("\n\n".join([title, listed, *told]), data)


def consulted(
    definition: WorkflowDefinition,
    run: WorkflowRun,
    number: int,
    continuation_id: str,
    asked: QuestionResult,
    unread: Sequence[OmittedContent],
) -> Answer:
    """After a last step: the expert's result. One that cannot be read as a result is passed on as it is."""
    data = _end(definition, run, number, continuation_id, expert_called=True) | asked.data()
    if unread:
        data["left_out"] = [*data.get("left_out", ()), *({"what": part.what, "why": part.why} for part in unread)]
    fields = result_fields(definition)
    result = parse(fields, asked.text)
    if isinstance(result, Unstructured):
        return Answer(
            f"{asked.text}\n\n(Not structured: {result.why}.)", data | {"text": asked.text, "unstructured": result.why}
        )
    return Answer(words(fields, result), data | result)


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
    if absent := missing(definition, run, number):
        data["missing"] = absent
    if run.issues:
        data["issues_found"] = msgspec.to_builtins(run.issues)
    return data


def _so_far(run: WorkflowRun) -> Mapping[str, Any]:
    return {
        "steps": [step.number for step in run.steps],
        "files_checked": run.files_checked,
        "relevant_files": run.relevant_files,
        "issues_found": dict(Counter(issue.severity for issue in run.issues)),
        "confidence": run.confidence,
    }


def _finding(issue: WorkflowIssue) -> dict[str, Any]:
    """What a caller found, in the shape of what an expert finds."""
    finding = {"severity": issue.severity, "title": issue.description, "file": issue.file, "line": issue.line}
    return {name: value for name, value in finding.items() if value is not None}
