"""Value paths: their notation and the values that they select."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.shaping_errors import LanguageError
from toold.shaping.value_paths import (
    EVERY,
    MAX_STEPS,
    MISSING,
    ValuePath,
    explain_missing,
    find_value,
    getter,
    parse_path,
)

VALUE = {
    "a": {"b": 1, "x.y": 2, "none": None},
    "list": [{"n": 1, "in": [{"k": 1}, {"k": 2}]}, {"n": 2, "in": []}, {"other": 3}, 4],
    "empty": [],
    "": "no name",
}
steps = st.one_of(st.text(max_size=6), st.integers(-999_999_999, 999_999_999), st.just(EVERY))
paths = st.lists(steps, min_size=1, max_size=6).map(lambda found: ValuePath(tuple(found)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.b", 1),
        ("a['x.y']", 2),
        ('a["x.y"]', 2),
        ("['a'].b", 1),
        ("['']", "no name"),
        ("a.none", None),
        ("list[0].n", 1),
        ("list[-1]", 4),
        ("list[-4].n", 1),
        ("list[*].n", [1, 2]),
        ("list[*].in[*].k", [1, 2]),
        ("list[*].in", [[{"k": 1}, {"k": 2}], []]),
        ("empty[*].n", []),
        ("list.length", 4),
        ("list[*].in.length", [2, 0]),
        ("empty.length", 0),
        ("a.length", MISSING),
        ("a.b.length", MISSING),
        ("list[4]", MISSING),
        ("list[-5]", MISSING),
        ("list.n", MISSING),
        ("a[0]", MISSING),
        ("a[*]", MISSING),
        ("a.b.c", MISSING),
        ("a.none.x", MISSING),
        ("nothing", MISSING),
    ],
)
def test_a_path_selects_a_value(text: str, found: Any) -> None:
    """Names select from objects, indexes and [*] from lists, ``length`` counts the elements of a list; null is a value,
    anything else is missing.
    """
    path = parse_path(text)
    assert find_value(path, VALUE) == found
    assert getter(path)(VALUE) == (None if found is MISSING else found)


@pytest.mark.parametrize(
    ("text", "position", "reported"),
    [
        ("", 1, "name of a field is missing"),
        ("a.", 3, "name of a field is missing"),
        (".a", 1, "name of a field is missing"),
        ("a..b", 3, "name of a field is missing"),
        ("a.*", 3, "without a dot"),
        ("a b", 2, "quote a name"),
        ("a[", 3, "an index, *"),
        ("a[x]", 3, "an index, *"),
        ("a[1", 4, "position 2 is not closed"),
        ("a['x]", 3, "quote ' is not closed"),
        ("a[1234567890]", 3, "an index, *"),
        ("a]", 2, "unexpected"),
        (".".join("a" * 100), 2 * MAX_STEPS, f"at most {MAX_STEPS} steps"),
    ],
)
def test_an_invalid_path_is_an_error_with_its_position(text: str, position: int, reported: str) -> None:
    """The error contains the position, the reason and an example."""
    with pytest.raises(LanguageError) as raised:
        parse_path(text)
    assert raised.value.position == position
    assert reported in raised.value.what
    assert raised.value.example


@given(paths)
def test_a_printed_path_parses_to_itself(path: ValuePath) -> None:
    """Any name can be printed and parsed."""
    assert parse_path(str(path)) == path


def test_filter_keywords_are_printed_in_quotes() -> None:
    """A printed path can be used in a filter."""
    assert str(ValuePath(("not", "AND", "Or", "note"))) == "['not']['AND']['Or'].note"


@given(st.text() | st.text("ab.[]*'\"-019 \\"))
def test_any_text_is_a_path_or_a_language_error(text: str) -> None:
    """The parser raises only LanguageError, whose position is at most one past the end of the text."""
    position = 1
    try:
        parse_path(text)
    except LanguageError as error:
        position = error.position
    assert 1 <= position <= len(text) + 1


@given(
    paths,
    st.recursive(
        st.none() | st.text(max_size=3),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=8,
    ),
)
def test_getter_is_equivalent_to_find_value(path: ValuePath, value: Any) -> None:
    """For a missing value the getter returns None."""
    found = find_value(path, value)
    assert getter(path)(value) == (None if found is MISSING else found)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("a.c", "`a.c` is missing: `a` has the fields b, x.y, none"),
        ("a.bb", "`a` has no 'bb'; did you mean 'b'?"),
        ("nothing", "the value has the fields a, list, empty, "),
        ("list[9].n", "`list` is a list of 4"),
        ("list.n", "`list` is a list: select one element, [0], or all, [*], before 'n'"),
        ("a[0]", "`a` is an object, and [0] is for lists"),
        ("a.none.x", "`a.none` is null"),
        ("a.b.c", "`a.b` is neither an object nor a list"),
    ],
)
def test_a_missing_value_is_explained(text: str, reported: str) -> None:
    """The message names the first step that fails and suggests alternatives."""
    assert reported in explain_missing(parse_path(text), VALUE)
