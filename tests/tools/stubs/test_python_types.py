"""Python types: their notation, the values that they accept, and literals."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.tools.stubs.python_types import ANY, MAX_CHOICES, PythonType, any_of, choice_of, literal


@pytest.mark.parametrize(
    ("values", "written"),
    [
        (["a", "b", "a"], 'Literal["a", "b"]'),
        (["a", None, 1, True], 'Literal["a", None, 1, True]'),
        ([0.5, "a"], "float | str"),
        ([[1], {"a": 1}], "list[Any] | dict[str, Any]"),
        (list(range(MAX_CHOICES + 1)), "int"),
        ([], "Any"),
    ],
)
def test_choices_become_literals_if_possible(values: list[Any], written: str) -> None:
    """Other choices become the union of their types."""
    assert str(choice_of(values)) == written


def test_a_union_has_each_type_once_and_none_last() -> None:
    """A union with ``Any`` is ``Any``."""
    types = [PythonType(("None",)), PythonType(("str",)), PythonType(("str",)), PythonType(literals=("1",))]
    assert str(any_of(types)) == "Literal[1] | str | None"
    assert str(any_of([*types, ANY])) == "Any"


@pytest.mark.parametrize(
    ("members", "value", "taken"),
    [
        (("int",), 1, True),
        (("int",), True, False),
        (("int",), 1.0, False),
        (("float",), 1, True),
        (("str",), None, False),
        (("None",), None, True),
        (("Any",), "x", True),
    ],
)
def test_a_type_accepts_the_same_values_as_a_type_checker(members: tuple[str, ...], value: object, taken: bool) -> None:
    """A default that does not match the type is not written to the signature."""
    assert PythonType(members).takes(value) is taken


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text())
def test_a_literal_evaluates_to_its_value(value: object) -> None:
    """A value is either written as an equal literal or not written at all."""
    written = literal(value)
    if written is not None:
        repeat = ast.literal_eval(written)
        assert (repeat, type(repeat)) == (value, type(value))
