"""Guidance between two steps: what to examine next, and what is missing so far. Pure."""

from itertools import pairwise

from .workflow_definition import Expected, Guidance, WorkflowDefinition
from .workflow_run import WorkflowRun

_CONFIDENT = ("very_high", "almost_certain", "certain")


def suggestions(definition: WorkflowDefinition, run: WorkflowRun, number: int) -> list[str]:
    """Returns what to examine after step ``number``."""
    texts = [rule.text for rule in definition.guidance if _applies(rule, definition, run, number)]
    if run.confidence in _CONFIDENT:
        texts.append("If nothing is left to check, send the last step now with next_step_required false.")
    elif number >= run.total:
        texts.append("This was the last planned step: raise total_steps, or finish with the next step.")
    return texts


def missing_fields(definition: WorkflowDefinition, run: WorkflowRun, number: int) -> dict[str, str]:
    """Maps each argument that is expected by step ``number`` and still missing to a description of its value."""
    missing = {
        expected.field: expected.text
        for expected in definition.expected
        if number >= expected.from_step and not _has_value(expected, run)
    }
    reported = sorted({*(step.number for step in run.steps), *run.discarded})
    unreported = [_between(before, after) for before, after in pairwise(reported) if after - before > 1]
    if unreported:
        missing["step_number"] = f"not reported: step {', '.join(unreported)}"
    return missing


def _between(before: int, after: int) -> str:
    """Returns the range of steps between two reported ones."""
    first, last = before + 1, after - 1
    return str(first) if first == last else f"{first} to {last}"


def argument_value(definition: WorkflowDefinition, run: WorkflowRun, name: str) -> object:
    """Returns the latest value of one of the tool's own arguments, or its default."""
    for step in reversed(run.steps):
        if name in step.tool_arguments:
            return step.tool_arguments[name]
    return run.values.get(name, definition.arguments[name].default)


def _applies(rule: Guidance, definition: WorkflowDefinition, run: WorkflowRun, number: int) -> bool:
    return (
        (rule.step is None or number == rule.step)
        and (rule.from_step is None or number >= rule.from_step)
        and (not rule.confidence or run.confidence in rule.confidence)
        and all(argument_value(definition, run, name) == value for name, value in rule.where.items())
    )


def _has_value(expected: Expected, run: WorkflowRun) -> bool:
    match expected.field:
        case "findings":
            return any(step.findings for step in run.steps)
        case "files_checked":
            return bool(run.files_checked)
        case "relevant_files":
            return bool(run.relevant_files)
        case "issues_found":
            return bool(run.issues)
        case name:
            values = (run.values.get(name), *(step.tool_arguments.get(name) for step in run.steps))
            return any(value not in (None, "", []) for value in values)
