"""Forms: what remains of a schema, and which answers fit."""

from typing import Any

import pytest
from toold.protocol.questions.elicitation_form import (
    MAX_CHOICES,
    MAX_FIELDS,
    ElicitationFormError,
    check_content,
    read_form,
)


def form(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


NESTED: dict[str, Any] = {}
NESTED["a"] = {"type": "object", "properties": NESTED}


@pytest.mark.parametrize(
    "bomb",
    [
        {"type": "object"},
        {"type": "array", "properties": {}},
        form(**{f"f{index}": {"type": "string"} for index in range(MAX_FIELDS + 1)}),
        form(a={"type": "object", "properties": NESTED}),
        form(a={"$ref": "#"}),
        form(a={"type": "string", "enum": ["x"] * (MAX_CHOICES + 1)}),
        form(a={"type": "array", "items": {"type": "string"}}),
        form(a={"type": "string", "minLength": -1}),
        form(**{"\x1b": {"type": "string"}}),
        form(a={"type": ["string", "null"]}),
        form(a={"type": {}}),
        {**form(), "required": ["missing"]},
    ],
)
def test_what_is_not_a_form_is_refused(bomb: Any) -> None:
    """Nested, recursive and endless schemas are."""
    with pytest.raises(ElicitationFormError):
        read_form(bomb)


def test_unknown_keywords_are_dropped() -> None:
    """A pattern that would take forever is never evaluated."""
    bomb = {"type": "string", "pattern": "(a+)+$", "title": "A\x07", "default": 7, "allOf": [{}], "format": [{}]}
    assert read_form(form(a=bomb))["properties"] == {"a": {"type": "string", "title": "A "}}


FIELDS = read_form(
    form(
        name={"type": "string", "minLength": 2, "maxLength": 5},
        age={"type": "integer", "minimum": 0, "maximum": 150},
        mail={"type": "string", "format": "email"},
        day={"type": "string", "format": "date"},
        color={"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]},
        sizes={"type": "array", "items": {"enum": ["s", "m"]}, "maxItems": 1},
        ok={"type": "boolean"},
    )
    | {"required": ["name"]}
)


def test_an_answer_has_the_form_s_fields_alone() -> None:
    """Others are dropped; optional ones may be missing or null."""
    content = {"name": "Ada", "age": 3, "mail": "a@b", "day": "2026-01-31", "color": "g", "sizes": ["m"], "ok": False}
    assert check_content(FIELDS, {**content, "more": 1}) == content
    assert check_content(FIELDS, {"name": "Ada", "age": None}) == {"name": "Ada"}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"name": value} for value in (None, 7, "A", "Adalbert")),
        *({"age": value} for value in (-1, 151, 1.5, True, "1")),
        *({"mail": "a"}, {"day": "2026-02-31"}, {"color": "b"}, {"sizes": ["x"]}, {"sizes": ["s", "m"]}, {"ok": 1}),
    ],
)
def test_values_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    """The error names the field."""
    with pytest.raises(ElicitationFormError, match=next(iter(wrong))):
        check_content(FIELDS, {"name": "Ada", **wrong})
