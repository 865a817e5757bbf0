"""Types: how they are written, what they take, and what values are named one by one."""

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
def test_choices_are_literals_where_a_type_can_name_them(values: list[Any], written: str) -> None:
    """Else they are whatever is of their types."""
    assert str(choice_of(values)) == written


def test_of_several_each_is_named_once_and_none_last() -> None:
    """``Any`` takes the rest in."""
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
def test_a_type_takes_what_a_checker_would(members: tuple[str, ...], value: object, taken: bool) -> None:
    """A default that does not fit is not written behind it."""
    assert PythonType(members).takes(value) is taken


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text())
def test_a_value_is_written_as_code_or_not_at_all(value: object) -> None:
    """What is written means the value."""
    written = literal(value)
    if written is not None:
        again = ast.literal_eval(written)
        assert (again, type(again)) == (value, type(value))
