"""The state of a workflow run: its steps so far, stored in the conversation between calls. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from ....protocol.tool_call import Json
from .workflow_definition import Confidence, Severity


class WorkflowIssue(msgspec.Struct, frozen=True, omit_defaults=True):
    """An issue found by the caller."""

    severity: Severity | None
    description: str
    file: str | None = None
    line: int | None = None
    more: dict[str, Any] = msgspec.field(default_factory=dict)
    """The caller's own fields."""

    def as_data(self) -> dict[str, Any]:
        """The fields that have a value, as the caller gave them."""
        fields = {"severity": self.severity, "description": self.description, "file": self.file, "line": self.line}
        return {name: value for name, value in fields.items() if value is not None} | self.more


class WorkflowStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step, as the caller reported it."""

    number: int
    text: str
    findings: str = ""
    files_checked: tuple[str, ...] = ()
    relevant_files: tuple[str, ...] = ()
    """The paths as the caller gave them."""
    issues: tuple[WorkflowIssue, ...] = ()
    tool_arguments: dict[str, Any] = msgspec.field(default_factory=dict, name="own")
    """The tool's own arguments that apply to this step only."""
    images: tuple[str, ...] = ()
    """Paths and URLs. ``data:`` URLs are not stored."""
    relevant_context: tuple[str, ...] = ()
    """Names of functions, methods and classes."""


class WorkflowRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run, from its first step to its last."""

    steps: tuple[WorkflowStep, ...] = ()
    """The steps by number. A step that is reported again replaces the earlier report."""
    total: int = 1
    """The caller's estimate of the number of steps."""
    values: dict[str, Any] = msgspec.field(default_factory=dict, name="said")
    """The latest values that carry over between steps: confidence, hypothesis, model, the tool's own arguments."""
    done: bool = False
    """Whether the last step was reported."""
    discarded: tuple[int, ...] = ()
    """The numbers of steps that the caller discarded."""

    @property
    def confidence(self) -> Confidence:
        return cast("Confidence", self.values.get("confidence", "exploring"))

    @property
    def issues(self) -> list[WorkflowIssue]:
        """The issues without duplicates, as last reported."""
        last = {(issue.description, issue.file, issue.line): issue for step in self.steps for issue in step.issues}
        return list(last.values())

    @property
    def relevant_files(self) -> list[str]:
        """The files of all steps, latest step first, because files that do not fit the window are omitted from the
        end.
        """
        return _unique(path for step in reversed(self.steps) for path in step.relevant_files)

    @property
    def images(self) -> list[str]:
        """The images of all steps, latest step first."""
        return _unique(image for step in reversed(self.steps) for image in step.images)

    @property
    def relevant_context(self) -> list[str]:
        return _unique(name for step in self.steps for name in step.relevant_context)

    @property
    def files_checked(self) -> list[str]:
        return _unique(path for step in self.steps for path in step.files_checked)


def stored_run(state: Json, tool: str) -> WorkflowRun | None:
    """Returns this tool's run from the conversation's state, or None."""
    stored = state.get(tool) if isinstance(state, dict) else None
    return None if stored is None else msgspec.convert(stored, WorkflowRun)


def with_run(state: Json, tool: str, run: WorkflowRun) -> Json:
    """Returns the conversation's state with this tool's run replaced."""
    others: Mapping[str, Json] = state if isinstance(state, dict) else {}
    return {**others, tool: msgspec.to_builtins(run)}


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
