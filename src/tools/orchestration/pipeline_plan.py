"""The plan of a pipeline: executable steps with their dependencies. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ...shaping import MissingValueError, ParsedTexts, Template, ValuePath
from ..tool_definition import Tool
from .pipeline_arguments import PipelineStep
from .pipeline_return import ReturnedFields
from .result_shaping import ResultShaping


@dataclass(frozen=True, slots=True)
class StepCondition:
    """A step's condition. Of the values named in ``partially_used_names`` it uses only parts; text values are parsed as
    JSON.
    """

    test: Callable[[Any], bool]
    names: tuple[str, ...]
    partially_used_names: frozenset[str]

    def holds(self, context: Mapping[str, Any], parsed: ParsedTexts) -> bool:
        return self.test(
            {**context, **{name: _parsed(context[name], parsed) for name in self.partially_used_names & context.keys()}}
        )


@dataclass(frozen=True, slots=True)
class ElementFilter:
    """Selects the elements of ``for_each``: all, those that match ``test``, or those for which ``template`` has a value
    other than null, false, 0, an empty text and an empty list.
    """

    test: Callable[[Any], bool] | None = None
    template: Template | None = None

    @property
    def names(self) -> frozenset[str]:
        return self.template.names if self.template else frozenset()

    @property
    def partially_used_names(self) -> frozenset[str]:
        if self.test is not None:
            return frozenset({"item"})
        return partially_used_names_of(self.template.paths) if self.template else frozenset()

    def selects(self, context: Mapping[str, Any], parsed: ParsedTexts) -> bool:
        """Whether the step runs for the element ``item`` of ``context``. A missing value counts as null.

        Raises:
            ShapingError: as raised by ``Template.resolve``.
        """
        if self.test is not None:
            return self.test(_parsed(context["item"], parsed))
        if self.template is None:
            return True
        try:
            value = self.template.resolve(dict(context), parsed)
        except MissingValueError:
            return False
        return not (value is None or value is False or value == 0 or value in ("", []))


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step that can run."""

    step: PipelineStep
    tool: Tool
    args: Template
    when: StepCondition | None
    for_each: Template | None
    elements: ElementFilter
    fallback: Template
    shape: ResultShaping | None
    after: tuple[str, ...]
    """The steps that this step refers to. It starts when they have ended."""

    @property
    def partially_used_names(self) -> frozenset[str]:
        """The names of the values that its templates and condition use only in part."""
        templates = (self.args, self.fallback, *((self.for_each,) if self.for_each else ()))
        parts = frozenset(name for template in templates for name in partially_used_names_of(template.paths))
        parts |= self.elements.partially_used_names
        return parts | self.when.partially_used_names if self.when else parts

    @property
    def id(self) -> str:
        return self.step.id


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """Steps in the given order, and the source of the result: a template, fields of steps, or None for the last
    step.
    """

    steps: tuple[PlannedStep, ...]
    returns: Template | ReturnedFields | None

    @property
    def partially_used_names(self) -> frozenset[str]:
        """The names of the values that templates and conditions use only in part."""
        returned = partially_used_names_of(self.returns.paths) if self.returns else frozenset()
        return returned.union(*(step.partially_used_names for step in self.steps))

    @property
    def rounds(self) -> list[list[str]]:
        """The steps in rounds, for ``dry_run`` only. Steps of a round can run in parallel after all earlier rounds."""
        depth: dict[str, int] = {}
        after = {step.id: step.after for step in self.steps}

        def depth_of(step: str) -> int:
            if step not in depth:
                depth[step] = 1 + max(map(depth_of, after[step]), default=-1)
            return depth[step]

        count = max(map(depth_of, after)) + 1
        return [[step for step in after if depth[step] == number] for number in range(count)]

    def shown(self) -> dict[str, Any]:
        """The plan as returned by ``dry_run``."""
        return {
            "dry_run": True,
            "total_steps": len(self.steps),
            "order": self.rounds,
            "steps": {
                planned.id: {
                    "tool_name": planned.step.tool_name,
                    "after": list(planned.after),
                    "annotations": msgspec.to_builtins(planned.tool.annotations),
                }
                for planned in self.steps
            },
        }


def partially_used_names_of(paths: Iterable[ValuePath]) -> frozenset[str]:
    """The first segment of each path that has several segments."""
    return frozenset(str(path.steps[0]) for path in paths if len(path.steps) > 1)


def _parsed(value: Any, parsed: ParsedTexts) -> Any:
    """The parsed JSON of a text value, or of each text in a list; other values unchanged."""
    if isinstance(value, list):
        return [parsed.get(item, item) if isinstance(item, str) else item for item in value]
    return parsed.get(value, value) if isinstance(value, str) else value
