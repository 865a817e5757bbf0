"""The shape of arguments."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.audit.argument_shape import shape

# Values use letters that neither names nor the shape's own words have, so that the tests can find them.
values = st.text("äöüßÄÖÜ", min_size=1, max_size=30)
names = st.text(max_size=60)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | values
json = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=60)


def test_documented_example() -> None:
    """The example in the documentation is correct."""
    arguments = {"text": "Hello, world", "value": {"a": 1}, "files": ["a.txt", "b.txt", "c.txt"]}
    assert shape(arguments) == {"text": "str[12]", "value": {"a": "int"}, "files": ["str[5]", "…2"]}


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({}, {}),
        ([], []),
        ([1], ["int"]),
        (
            {"a": None, "b": True, "c": 1.5, "d": 1, "e": ""},
            {"a": "null", "b": "bool", "c": "float", "d": "int", "e": "str[0]"},
        ),
        ({"a": object()}, {"a": "other"}),
        ({"two words": 1}, {"name[9]": "int"}),
        ({"x" * 33: 1}, {"name[33]": "int"}),
        ({"sk-abcdef0123456789": 1}, {"name[19]": "int"}),
        ({"": 1}, {"name[0]": "int"}),
        ({f"k{n}": 1 for n in range(30)}, {f"k{n}": "int" for n in range(24)} | {"…": "…6"}),
    ],
)
def test_shape_of_values(value: Any, reported: Any) -> None:
    """A shape has types, lengths and plain names, each within its limit."""
    assert shape(value) == reported


def test_depth_is_limited() -> None:
    """Below the sixth level a shape has only sizes."""
    deep: Any = [1, 2]
    for _ in range(1000):
        deep = {"a": deep}
    assert msgspec.json.encode(shape(deep)).endswith(b'"object[1]"' + b"}" * 6)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json)
def test_shape_contains_no_values(arguments: Any) -> None:
    """A shape contains no text of the arguments' values."""
    assert not set("äöüßÄÖÜ") & set(msgspec.json.encode(_without_names(shape(arguments))).decode())


def _without_names(reported: Any) -> Any:
    if isinstance(reported, dict):
        return [_without_names(value) for value in reported.values()]
    return [_without_names(value) for value in reported] if isinstance(reported, list) else reported


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json)
def test_size_of_a_shape_is_limited(arguments: Any) -> None:
    """The shape of any arguments is at most 4 KiB of JSON."""
    assert len(msgspec.json.encode(shape(arguments))) <= 4096


def test_size_of_the_largest_shape_is_limited() -> None:
    """A shape with the longest names on all levels is within the limit."""
    wide: Any = 1
    for _ in range(8):
        wide = {"x" * 31 + chr(97 + number): wide for number in range(24)}
    assert 1024 < len(msgspec.json.encode(shape(wide))) <= 4096


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(names, scalars))
def test_unsafe_names_are_replaced_with_their_length(arguments: dict[str, Any]) -> None:
    """Names in a shape are short; unsafe names are replaced with their length."""
    for name in shape(arguments):
        assert len(name) <= 32
        assert name == "…" or name.startswith("name[") or name in arguments
