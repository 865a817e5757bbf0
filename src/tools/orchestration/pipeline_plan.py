"""The plan of a pipeline: its steps ready to run, each with those that it waits for. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ...shaping import Said, Template, ValuePath
from ..tool_definition import Tool
from .pipeline_arguments import PipelineStep
from .result_shaping import ResultShaping


@dataclass(frozen=True, slots=True)
class When:
    """Whether a step is to run. ``into`` are the names that it goes on behind: for it they are what their words say."""

    test: Callable[[Any], bool]
    names: tuple[str, ...]
    into: frozenset[str]

    def holds(self, context: Mapping[str, Any], said: Said) -> bool:
        return self.test({**context, **{name: _said(context[name], said) for name in self.into & context.keys()}})


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step, ready to run."""

    step: PipelineStep
    tool: Tool
    args: Template
    when: When | None
    for_each: Template | None
    fallback: Template
    shape: ResultShaping | None
    after: tuple[str, ...]
    """The steps that it refers to: it begins when they have ended."""

    @property
    def into(self) -> frozenset[str]:
        """The names of what it refers to a part of."""
        templates = (self.args, self.fallback, *((self.for_each,) if self.for_each else ()))
        parts = frozenset(name for template in templates for name in referred_into(template.paths))
        return parts | self.when.into if self.when else parts

    @property
    def id(self) -> str:
        return self.step.id


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """Steps in the order in which they were given, and what is answered."""

    steps: tuple[PlannedStep, ...]
    returns: Template | None

    @property
    def into(self) -> frozenset[str]:
        """The names of what its templates and conditions refer to a part of."""
        returned = referred_into(self.returns.paths) if self.returns else frozenset()
        return returned.union(*(step.into for step in self.steps))

    @property
    def order(self) -> list[list[str]]:
        """The steps in rounds: those of one round can run side by side, once those of the rounds before have ended."""
        depth: dict[str, int] = {}
        after = {step.id: step.after for step in self.steps}

        def depth_of(step: str) -> int:
            if step not in depth:
                depth[step] = 1 + max(map(depth_of, after[step]), default=-1)
            return depth[step]

        rounds = max(map(depth_of, after)) + 1
        return [[step for step in after if depth[step] == number] for number in range(rounds)]

    def shown(self) -> dict[str, Any]:
        """The plan as ``dry_run`` answers it."""
        return {
            "dry_run": True,
            "total_steps": len(self.steps),
            "order": self.order,
            "steps": {
                planned.id: {
                    "tool_name": planned.step.tool_name,
                    "after": list(planned.after),
                    "annotations": msgspec.to_builtins(planned.tool.annotations),
                }
                for planned in self.steps
            },
        }


def referred_into(paths: Iterable[ValuePath]) -> frozenset[str]:
    """The first names of the paths that go on behind them."""
    return frozenset(str(path.steps[0]) for path in paths if len(path.steps) > 1)


def _said(value: Any, said: Said) -> Any:
    """What a step's words say, or those of each of its elements."""
    if isinstance(value, list):
        return [said.get(item, item) if isinstance(item, str) else item for item in value]
    return said.get(value, value) if isinstance(value, str) else value
