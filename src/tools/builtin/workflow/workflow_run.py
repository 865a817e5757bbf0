"""What a workflow's steps have brought so far: kept in the thread's state from call to call. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from ....protocol.tool_call import Json
from .workflow_definition import Confidence, Severity


class WorkflowIssue(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something wrong that the caller found."""

    severity: Severity
    description: str
    file: str | None = None
    line: int | None = None


class WorkflowStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step, as the caller reported it."""

    number: int
    text: str
    findings: str = ""
    files_checked: tuple[str, ...] = ()
    relevant_files: tuple[str, ...] = ()
    """As the caller named them."""
    issues: tuple[WorkflowIssue, ...] = ()
    own: dict[str, Any] = {}
    """What the tool's own arguments say of this step alone."""


class WorkflowRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One investigation, from its first step to its last."""

    steps: tuple[WorkflowStep, ...] = ()
    """By number, each once: a step that is reported again takes the place of what it was."""
    total: int = 1
    """How many steps the caller thinks there will be."""
    said: dict[str, Any] = {}
    """The latest of what goes on from step to step: confidence, hypothesis, model, the tool's own arguments."""
    done: bool = False
    """Whether the last step was answered."""

    @property
    def confidence(self) -> Confidence:
        return cast("Confidence", self.said.get("confidence", "exploring"))

    @property
    def issues(self) -> list[WorkflowIssue]:
        """Each once, as it was last reported."""
        last = {(issue.description, issue.file, issue.line): issue for step in self.steps for issue in step.issues}
        return list(last.values())

    @property
    def relevant_files(self) -> list[str]:
        """Those of the latest step first: what does not fit into a window is left out from the end."""
        return _once(path for step in reversed(self.steps) for path in step.relevant_files)

    @property
    def files_checked(self) -> list[str]:
        return _once(path for step in self.steps for path in step.files_checked)


def kept_run(state: Json, tool: str) -> WorkflowRun | None:
    """What the state of a thread has of this tool's steps; None where there were none."""
    kept = state.get(tool) if isinstance(state, dict) else None
    return None if kept is None else msgspec.convert(kept, WorkflowRun)


def with_run(state: Json, tool: str, run: WorkflowRun) -> Json:
    """The state of the thread with this tool's steps as they are now; what other tools keep there stays."""
    others: Mapping[str, Json] = state if isinstance(state, dict) else {}
    return {**others, tool: msgspec.to_builtins(run)}


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
