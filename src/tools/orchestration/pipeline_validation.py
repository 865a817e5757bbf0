"""Validates a pipeline and makes its plan: reports all certain errors before anything runs. Pure.

``pipeline_run`` decides when a step starts.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ...protocol.error_codes import InvalidArgumentsError, PermissionDeniedError, ToolNotFoundError
from ...protocol.name_suggestions import as_sentence, close_names, did_you_mean
from ...shaping import Filter, LanguageError, Template, ValuePath, compile_filter, conditions_of, parse_filter, paths_of
from ..tool_definition import Tool
from .argument_templates import ArgumentTemplate, Problem
from .pipeline_arguments import PipelineStep, PipelineSteps
from .pipeline_plan import ElementFilter, PipelinePlan, PlannedStep, StepCondition, partially_used_names_of
from .pipeline_return import ReturnedFields, bare_references, returned_fields, selects_fields
from .result_shaping import ResultShaping, plan_shaping

OF_ITEM: Final = frozenset({"item", "index"})
RESERVED: Final = frozenset({"input", *OF_ITEM})
"""The names that templates can use in addition to step ids."""

_REFERENCE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[.\[]")
"""The beginning of a reference to a part of a step's result."""

FindTool = Callable[[str], Tool]


def plan_pipeline(
    steps: PipelineSteps, find_tool: FindTool, known: Mapping[str, Any], problems: Iterable[Problem] = ()
) -> PipelinePlan:
    """Plan these steps. ``known`` is the known part of their templates' context, such as the input; ``problems`` are
    errors found earlier.

    Raises:
        InvalidArgumentsError: ``details.fields`` has every certain error by its place.
    """
    return _planned(steps, find_tool, known, problems=problems)


def check_pipeline(steps: PipelineSteps, parameters: Collection[str] | None = None) -> None:
    """Check steps independently of available tools and input values. ``parameters`` are the names that the input may
    have; None allows any.

    Raises:
        InvalidArgumentsError: as raised by ``plan_pipeline``.
    """
    _planned(steps, None, {}, parameters)


def _planned(
    steps: PipelineSteps,
    find_tool: FindTool | None,
    known: Mapping[str, Any],
    parameters: Collection[str] | None = None,
    problems: Iterable[Problem] = (),
) -> PipelinePlan:
    planning = _Planning(steps.steps, find_tool, known, parameters, problems)
    planned = [planning.step(step, f"steps.{number}") for number, step in enumerate(steps.steps)]
    returns = planning.returned(steps.return_)
    planning.find_cycles()
    planning.raise_problems()
    return PipelinePlan(tuple(step for step in planned if step is not None), returns)


def invalid(problems: Iterable[Problem]) -> InvalidArgumentsError:
    """One error that reports all problems."""
    fields: dict[str, str] = {}
    for place, wrong in problems:
        fields[place] = f"{fields[place]}; {wrong}" if place in fields else wrong
    message = "; ".join(f"{place}: {wrong}" for place, wrong in fields.items())
    return InvalidArgumentsError(as_sentence(message), details={"fields": fields})


class _Planning:
    """The steps planned and the problems found so far."""

    def __init__(
        self,
        steps: Sequence[PipelineStep],
        find_tool: FindTool | None,
        known: Mapping[str, Any],
        parameters: Collection[str] | None,
        problems: Iterable[Problem],
    ) -> None:
        self._places: dict[str, str] = {}
        self._problems: list[Problem] = list(problems)
        self._find_tool = find_tool
        self._known = known
        self._parameters = parameters
        self._after: dict[str, tuple[str, ...]] = {}
        for number, step in enumerate(steps):
            place = f"steps.{number}.id"
            if step.id in RESERVED:
                self._add_problem(place, f"{step.id!r} is a reserved name in templates; choose another id")
            elif step.id in self._places:
                self._add_problem(place, f"{step.id!r} is already the id of {self._places[step.id]}; ids are unique")
            self._places.setdefault(step.id, f"steps.{number}")

    def _add_problem(self, place: str, problem: str) -> None:
        self._problems.append((place, problem))

    def step(self, step: PipelineStep, place: str) -> PlannedStep | None:
        """The planned step; None if a part of it is invalid."""
        allowed = RESERVED if step.for_each is not None else frozenset({"input"})
        tool = self._tool(step.tool_name, f"{place}.tool_name")
        args = self.template_of(step.args, f"{place}.args", allowed)
        when = self._when(step.when, f"{place}.when")
        for_each = self.template_of(step.for_each, f"{place}.for_each", frozenset({"input"}))
        fallback = self.template_of(step.fallback, f"{place}.fallback", allowed)
        shape = self._shape(step, f"{place}.options")
        elements = self._element_filter(step, f"{place}.filter")
        if step.for_each is None and "concurrency" in step.model_fields_set:
            self._add_problem(
                f"{place}.concurrency", "is for the elements of for_each; steps run in parallel without it"
            )
        if tool is not None:
            self._problems += args.mismatches(tool)
        if isinstance(step.for_each, str) and for_each.template and not for_each.names:
            self._add_problem(f"{place}.for_each", "should be a list, or a template of one, such as {{fetch.items}}")
        if (step.on_error == "fallback") != ("fallback" in step.model_fields_set):
            self._add_problem(f"{place}.fallback", "on_error 'fallback' and a fallback require each other")
        asked = when.names if when else ()
        after = dict.fromkeys(
            (*sorted(args.names), *asked, *sorted(for_each.names), *sorted(elements.names), *sorted(fallback.names))
        )
        self._after[step.id] = tuple(name for name in after if name in self._places)
        if tool is None or args.template is None or for_each.template is None or fallback.template is None:
            return None
        return PlannedStep(
            step=step,
            tool=tool,
            args=args.template,
            when=when,
            for_each=None if step.for_each is None else for_each.template,
            elements=elements,
            fallback=fallback.template,
            shape=shape,
            after=self._after[step.id],
        )

    def template_of(self, value: Any, place: str, allowed: frozenset[str]) -> ArgumentTemplate:
        """The value's templates, which may refer to steps and to the ``allowed`` names."""
        found = ArgumentTemplate(value, self._known, place)
        self._problems += found.problems
        self._check_names(found.names, place, allowed)
        self._check_parameters(found.template.paths if found.template else (), place)
        return found

    def returned(self, value: Any) -> Template | ReturnedFields | None:
        """How the pipeline's result is built; None for the result of the last step."""
        if value is None:
            return None
        template = self.template_of(value, "return", frozenset({"input"})).template
        if template is None or template.names:
            return template
        if selects_fields(value):
            fields, problems = returned_fields(value, self._places)
            self._problems += problems
            return fields
        self._problems += bare_references(value, self._places)
        return template

    def find_cycles(self) -> None:
        """Report cycles: steps that wait for themselves, directly or through others. Steps that wait for a cycle are
        not reported.
        """
        left = _blocked_steps(self._after)
        while left:
            walked = [next(iter(left))]
            while (following := next(name for name in left[walked[-1]] if name in left)) not in walked:
                walked.append(following)
            cycle = walked[walked.index(following) :]
            shown = " → ".join([*cycle, following])
            self._add_problem(self._places[following], f"these steps wait for each other: {shown}")
            left = _blocked_steps({step: after for step, after in left.items() if step not in cycle})

    def raise_problems(self) -> None:
        if self._problems:
            raise invalid(self._problems)

    def _tool(self, name: str, place: str) -> Tool | None:
        if self._find_tool is None:
            return None
        try:
            return self._find_tool(name)
        except (ToolNotFoundError, PermissionDeniedError) as error:
            self._add_problem(place, error.message.removesuffix("."))
            return None

    def _when(self, text: str | None, place: str) -> StepCondition | None:
        if text is None or self._has_template(text, place, "a condition names fields directly: fetch.total > 0"):
            return None
        try:
            condition = parse_filter(text)
        except LanguageError as error:
            self._add_problem(place, str(error))
            return None
        paths = list(paths_of(condition))
        self._check_parameters(paths, place)
        self._check_values(condition, text, place)
        names = [str(path.steps[0]) for path in paths]
        if OF_ITEM & set(names):
            self._add_problem(
                place,
                "item and index cannot be used: when applies to the whole step; use filter to select elements",
            )
        self._check_names([name for name in names if name not in OF_ITEM], place, frozenset({"input"}))
        return StepCondition(compile_filter(condition), tuple(names), partially_used_names_of(paths))

    def _element_filter(self, step: PipelineStep, place: str) -> ElementFilter:
        """The step's ``filter``: a condition of the shaping language, or a template whose value selects an element."""
        text = step.filter
        if text is None:
            return ElementFilter()
        if step.for_each is None:
            self._add_problem(
                place, "is for the elements of for_each; options.filter filters the result, and when skips the step"
            )
        if "{{" in text:
            return ElementFilter(template=self.template_of(text, place, RESERVED).template)
        try:
            condition = parse_filter(text)
        except LanguageError as error:
            self._add_problem(place, str(error))
            return ElementFilter()
        return ElementFilter(compile_filter(condition))

    def _shape(self, step: PipelineStep, place: str) -> ResultShaping | None:
        instead = "call execute_tool in the step, whose options in args may have templates"
        self._has_template((step.options or {}).get("filter"), f"{place}.filter", instead)
        try:
            return plan_shaping(step.options, place) if step.options else None
        except InvalidArgumentsError as error:
            self._problems += ((error.details or {}).get("fields") or {place: error.message}).items()
            return None

    def _has_template(self, condition: Any, place: str, instead: str) -> bool:
        """Whether a filter contains a template, which the filter would treat as text. If so, adds a problem."""
        if not (isinstance(condition, str) and "{{" in condition):
            return False
        self._add_problem(place, f"templates are not resolved here; {instead}")
        return True

    def _check_values(self, condition: Filter, text: str, place: str) -> None:
        """An unquoted operand that looks like a reference to a step is an error; quotes make it a text."""
        for one in conditions_of(condition):
            for value in one.value if isinstance(one.value, tuple) else (one.value,):
                found = _REFERENCE.match(value) if isinstance(value, str) else None
                if found is None or found[1] not in {"input", *self._places}:
                    continue
                if f"'{value}'" not in text and f'"{value}"' not in text:
                    problem = f"{value} would be a text: a field is compared with a value, not with another field"
                    self._add_problem(place, f"{problem}; if you mean the text, quote it")

    def _check_parameters(self, paths: Iterable[ValuePath], place: str) -> None:
        for path in paths:
            match path.steps:
                case ("input", str(name), *_) if self._parameters is not None and name not in self._parameters:
                    known = ", ".join(self._parameters) or "none"
                    hint = did_you_mean(close_names(name, self._parameters, n=1)) or f"the parameters are {known}"
                    self._add_problem(place, f"there is no parameter {name!r}; {hint}")

    def _check_names(self, names: Iterable[str], place: str, allowed: frozenset[str]) -> None:
        for name in names:
            if name in OF_ITEM - allowed:
                self._add_problem(place, f"{name!r} exists only in args and fallback of a step with for_each")
            elif name not in allowed and name not in self._places:
                known = [*self._places, *sorted(allowed)]
                hint = did_you_mean(close_names(name, known, n=1)) or f"known names: {', '.join(known)}"
                self._add_problem(place, f"there is no step {name!r}; {hint}")


def _blocked_steps(after: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The steps that can never start: those that remain after removing steps without dependencies repeatedly."""
    left = dict(after)
    while free := [step for step, names in left.items() if not any(name in left for name in names)]:
        for step in free:
            del left[step]
    return left
