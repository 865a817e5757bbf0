"""The ``return`` of a pipeline: a value with templates, or fields of steps as ``{step: [paths]}``. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import close_names, did_you_mean
from ...protocol.tool_call import Json
from ...shaping import NoListError, ParsedTexts, ShapingPlan, ValuePath, plan
from .argument_templates import Problem

_REFERENCE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:[.\[][^\s{}]*)?")
"""A text that looks like a reference to a step or to a part of its result."""


class ReturnedFields(msgspec.Struct, frozen=True):
    """The fields to return of each step's result; a plan without options returns the whole result."""

    plans: Mapping[str, ShapingPlan]

    @property
    def paths(self) -> tuple[ValuePath, ...]:
        """The paths into the steps' results; results that are texts are parsed as JSON for them."""
        return tuple(
            ValuePath((step, *path.steps)) for step, fields in self.plans.items() for path in fields.select_fields
        )

    def resolve(self, context: Mapping[str, Json], parsed: ParsedTexts) -> tuple[dict[str, Json], dict[str, list[str]]]:
        """The fields of each step that has a result, and by step the paths that matched nothing. A missing field is not
        an error, because all steps have run.

        Raises:
            ShapingError: a result is nested too deeply.
        """
        fields: dict[str, Json] = {}
        unmatched: dict[str, list[str]] = {}
        for step, selection in self.plans.items():
            if step not in context:
                continue
            value = context[step]
            try:
                shaped = selection.apply(parsed.get(value, value) if isinstance(value, str) else value)
            except NoListError:  # several lists, or one in a record, and no other field with these names
                fields[step], unmatched[step] = {}, [str(path) for path in selection.select_fields]
                continue
            fields[step] = shaped.value
            if shaped.report.unmatched:
                unmatched[step] = list(shaped.report.unmatched)
        return fields, unmatched


def selects_fields(value: Any) -> bool:
    """Whether a ``return`` without templates is a selection of fields: an object whose values are lists of texts."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(fields, list) and all(isinstance(path, str) for path in fields) for fields in value.values())
    )


def returned_fields(value: Mapping[str, list[str]], steps: Collection[str]) -> tuple[ReturnedFields, list[Problem]]:
    """The selection, and its problems: unknown steps and invalid paths."""
    plans: dict[str, ShapingPlan] = {}
    problems: list[Problem] = []
    for step, fields in value.items():
        if step not in steps:
            hint = did_you_mean(close_names(step, steps, n=1)) or f"the steps are {', '.join(steps)}"
            problems.append((f"return.{step}", f"there is no step {step!r}; {hint}"))
        try:
            plans[step] = plan({"select_fields": fields} if fields else None, f"return.{step}")
        except InvalidArgumentsError as error:
            problems += ((error.details or {}).get("fields") or {f"return.{step}": error.message}).items()
    return ReturnedFields(plans), problems


def bare_references(value: Any, steps: Collection[str], place: str = "return") -> Iterator[Problem]:
    """Texts that are references without braces, such as ``fetch.items``. They would be returned literally."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from bare_references(part, steps, f"{place}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from bare_references(part, steps, f"{place}.{index}")
    elif isinstance(value, str):
        found = _REFERENCE.fullmatch(value)
        if found and found[1] in steps and (place == "return" or found[1] != value):
            yield place, f"{value!r} would be returned literally; write '{{{{{value}}}}}' for the step's result"
