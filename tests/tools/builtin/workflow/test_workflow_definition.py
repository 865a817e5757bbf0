"""Validation of workflow definitions."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from toold.tools.builtin.workflow.step_arguments import StepArguments
from toold.tools.builtin.workflow.workflow_definition import ANSWER_FIELDS, STEP_ARGUMENTS, WorkflowDefinition
from toold.tools.builtin.workflow.workflow_result import COMMON

Define = Callable[..., WorkflowDefinition]


def argument(**more: Any) -> dict[str, Any]:
    return {"arguments": {"mode": {"type": "string", "description": "How.", **more}}}


def result(**more: Any) -> dict[str, Any]:
    return {"result": {"part": {"type": "string", "description": "What.", **more}}}


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"deadline_s": 0}, "greater than 0"),
    ({"deadline_s": 1801}, "less than or equal to 1800"),
    ({"guidance": []}, "at least 1 item"),
    ({"guidance": [{"text": "x", "step": 0}]}, "greater than or equal to 1"),
    (
        {"guidance": [{"text": "x", "where": {"mode": "deep"}}]},
        "guidance.0.where: 'mode' is not an argument defined in this file",
    ),
    (
        {"guidance": [{"text": "x", "where": {"mode": "high"}}], **argument(choices=["deep"])},
        "guidance.0.where.mode: must be deep, not 'high'",
    ),
    ({"expected": [{"field": "mood", "text": "x"}]}, "expected.0.field: there is no argument 'mood'"),
    (argument(type="integer", choices=["1"]), "choices: only allowed for string and strings, not for integer"),
    (argument(default=1), "default: must have the argument's type, string"),
    (argument(type="integer", default=True), "default: must have the argument's type, integer"),
    (argument(type="boolean", default="yes"), "default: must have the argument's type, boolean"),
    (argument(choices=["deep"], default="high"), "default: must be one of the choices, deep"),
    (argument(type="strings", choices=["deep"], default=["high"]), "default: must be one of the choices, deep"),
    (argument(default="x", required_on=1), "default: not allowed with required_on"),
    (result(type="objects"), "fields: required if type is objects, and not allowed otherwise"),
    (result(fields={"a": {"type": "string", "description": "x"}}), "fields: required if type is objects"),
    (result(type="boolean", choices=["a"]), "choices: only allowed for string and strings, not for boolean"),
    (
        result(type="objects", fields={"A-b": {"type": "string", "description": "x"}}),
        "'A-b': a name is 1-40 characters",
    ),
]


@pytest.mark.parametrize(("fields", "message"), INVALID)
def test_invalid_definitions_are_refused(define: Define, fields: dict[str, Any], message: str) -> None:
    """The error names the key and the valid values."""
    with pytest.raises(ValidationError) as caught:
        define(**fields)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", sorted(STEP_ARGUMENTS))
def test_names_of_common_arguments_are_reserved(define: Define, name: str) -> None:
    """A definition cannot use the name of a common argument."""
    with pytest.raises(ValidationError, match=f"'{name}': already used by every workflow tool"):
        define(arguments={name: {"type": "string", "description": "x"}})


@pytest.mark.parametrize("name", sorted(ANSWER_FIELDS))
def test_names_of_common_result_fields_are_reserved(define: Define, name: str) -> None:
    """A definition cannot use the name of a common field of answers."""
    with pytest.raises(ValidationError, match=f"'{name}': already used by every workflow tool"):
        define(result={name: {"type": "string", "description": "x"}})


def test_reserved_names_match_the_common_names() -> None:
    """The reserved names include the arguments and result fields of all workflow tools."""
    assert {*StepArguments.model_fields, "prompt"} == STEP_ARGUMENTS
    assert COMMON.keys() <= ANSWER_FIELDS
