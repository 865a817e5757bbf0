"""The result of a workflow: the schema for the model, parsing of its answer, and the text."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator.schema_example import value_for
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition
from toold.tools.builtin.workflow.workflow_result import (
    Unstructured,
    parse_result,
    result_fields,
    result_schema,
    result_text,
)

Define = Callable[..., WorkflowDefinition]
FINDING = {
    "severity": "high",
    "title": "It leaks",
    "file": "a.py",
    "line": 12,
    "explanation": "No close.",
    "fix": "with",
}
RESULT: dict[str, Any] = {"summary": "One leak.", "findings": [FINDING]}
FIELDS: dict[str, Any] = {
    "verdict": {"type": "string", "description": "What to do.", "choices": ["go", "stop"]},
    "ready": {"type": "boolean", "description": "Whether."},
    "score": {"type": "number", "description": "How good.", "optional": True},
    "notes": {"type": "strings", "description": "More."},
    "tests": {
        "type": "objects",
        "description": "Tests.",
        "fields": {
            "name": {"type": "string", "description": "Its name."},
            "code": {"type": "string", "description": "Its code."},
            "line": {"type": "integer", "description": "Where.", "optional": True},
        },
    },
}
WHOLE = {
    **RESULT,
    "verdict": "go",
    "ready": True,
    "notes": ["n"],
    "tests": [{"name": "test_a", "code": "def test_a():\n    pass", "line": 3}],
}


def test_result_schema_meets_the_restrictions_of_the_vendors(define: Define) -> None:
    """Every field has a type, objects allow no other properties, and only optional fields are not required."""
    result = result_schema(result_fields(define(result=FIELDS)))
    assert result["required"] == ["summary", "findings", "verdict", "ready", "notes", "tests"]
    assert result["properties"]["verdict"] == {"type": "string", "enum": ["go", "stop"], "description": "What to do."}
    assert result["properties"]["notes"] == {"type": "array", "items": {"type": "string"}, "description": "More."}
    assert result["properties"]["tests"]["items"]["required"] == ["name", "code"]
    assert result["properties"]["findings"]["items"]["required"] == ["severity", "title", "explanation"]

    def check(node: dict[str, Any]) -> None:
        assert isinstance(node["type"], str)
        assert (node["type"] == "object") is ("additionalProperties" in node)
        for inner in (*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])):
            check(inner)

    check(result)


def test_valid_answer_is_parsed(define: Define) -> None:
    """An answer that matches the schema is a result."""
    fields = result_fields(define(result=FIELDS))
    value = value_for(result_schema(fields))
    assert parse_result(fields, json.dumps(value)) == value


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "Here it is:\n{}\nThat is all.", "Simulated: {}", "\n\n {} \n"]
)
def test_text_around_the_json_is_ignored(define: Define, around: str) -> None:
    """Models without enforced JSON put it into a fence, or add text before and after it."""
    assert parse_result(result_fields(define()), around.format(json.dumps(RESULT))) == RESULT


@pytest.mark.parametrize(
    ("message", "is_read_as"),
    [
        ({"severity": " High "}, {"severity": "high"}),
        ({"line": "12-15"}, {"line": 12}),
        ({"line": "line 7"}, {"line": 7}),
        ({"line": None, "file": None}, {}),
        ({"cwe": "CWE-20"}, {}),
    ],
)
def test_small_deviations_are_normalised(define: Define, message: Any, is_read_as: Any) -> None:
    """Upper case, a range of lines, null and additional fields do not invalidate an answer."""
    answer = {**RESULT, "findings": [{**FINDING, **message}]}
    stored = {name: value for name, value in FINDING.items() if message.get(name, value) is not None}
    assert parse_result(result_fields(define()), json.dumps(answer)) == {**RESULT, "findings": [stored | is_read_as]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I found a leak.", "the answer has no JSON object"),
        ("", "the answer has no JSON object"),
        ("} {", "the answer has no JSON object"),
        ('{"summary": "cut o}', "the answer is not JSON: "),
        ('{"summary": "s"}', "the answer does not fit the schema: findings: Field required"),
        ('{"summary": "s", "findings": [{"title": "t"}]}', "the answer does not fit the schema: findings.0.severity"),
        ('{"summary": "s", "findings": "none"}', "the answer does not fit the schema: findings: "),
        ("{" + '"a":{' * 100_000 + "}" * 100_000, "the answer is not JSON: "),
    ],
)
def test_invalid_answer_has_a_reason(define: Define, text: str, why: str) -> None:
    """The reason names the place of the error."""
    outcome = parse_result(result_fields(define()), text)
    assert isinstance(outcome, Unstructured)
    assert outcome.reason.startswith(why)


@given(st.text() | st.text().map(lambda text: "{" + text + "}"))
def test_any_text_can_be_parsed(define: Define, text: str) -> None:
    """Any text is either a result or unstructured."""
    assert isinstance(parse_result(result_fields(define(result=FIELDS)), text), dict | Unstructured)


def test_result_is_formatted_as_text(define: Define) -> None:
    """The text has the summary, each finding with its location and fix, and each other field with its name."""
    assert result_text(result_fields(define(result=FIELDS)), WHOLE) == (
        "One leak.\n\n"
        "1. [high] It leaks (a.py:12)\n   No close.\n   Fix: with\n\n"
        "Verdict: go\n\n"
        "Ready: true\n\n"
        "Notes:\n- n\n\n"
        "Tests:\n1. test_a\n   Code:\n   def test_a():\n       pass\n   Line: 3"
    )


def test_result_without_findings_is_formatted(define: Define) -> None:
    """The text states that there are no findings. Other empty fields are omitted."""
    assert result_text(result_fields(define(result=FIELDS)), {"summary": "Fine.", "findings": [], "notes": []}) == (
        "Fine.\n\nNo findings."
    )
