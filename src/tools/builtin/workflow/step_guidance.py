"""What a caller is told between two steps: what to look at next, and what is missing so far. Pure."""

from itertools import pairwise

from .workflow_definition import Expected, Guidance, WorkflowDefinition
from .workflow_run import WorkflowRun

_SURE = ("very_high", "almost_certain", "certain")


def next_looks(definition: WorkflowDefinition, run: WorkflowRun, number: int) -> list[str]:
    """What to look at after step ``number``."""
    looks = [rule.say for rule in definition.guidance if _holds(rule, definition, run, number)]
    if run.confidence in _SURE:
        looks.append("If nothing is left to check, send the last step now, with next_step_required false.")
    elif number >= run.total:
        looks.append("That was the last step that you planned: raise total_steps, or finish with the next one.")
    return looks


def missing(definition: WorkflowDefinition, run: WorkflowRun, number: int) -> dict[str, str]:
    """Arguments that should have come by step ``number`` → what to give."""
    absent = {
        expected.field: expected.say
        for expected in definition.expected
        if number >= expected.from_step and not _given(expected, run)
    }
    reported = [step.number for step in run.steps]
    unreported = [_between(before, after) for before, after in pairwise(reported) if after - before > 1]
    if unreported:
        absent["step_number"] = f"not reported: step {', '.join(unreported)}"
    return absent


def _between(before: int, after: int) -> str:
    """The steps between two that were reported."""
    first, last = before + 1, after - 1
    return str(first) if first == last else f"{first} to {last}"


def own_value(definition: WorkflowDefinition, run: WorkflowRun, name: str) -> object:
    """What one of the tool's own arguments says, by the latest step that said something."""
    for step in reversed(run.steps):
        if name in step.own:
            return step.own[name]
    return run.said.get(name, definition.arguments[name].default)


def _holds(rule: Guidance, definition: WorkflowDefinition, run: WorkflowRun, number: int) -> bool:
    return (
        (rule.step is None or number == rule.step)
        and (rule.from_step is None or number >= rule.from_step)
        and (not rule.confidence or run.confidence in rule.confidence)
        and all(own_value(definition, run, name) == value for name, value in rule.where.items())
    )


def _given(expected: Expected, run: WorkflowRun) -> bool:
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
            said = (run.said.get(name), *(step.own.get(name) for step in run.steps))
            return any(value not in (None, "", []) for value in said)
