"""Paths: how they are written, and where they lead."""

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
def test_a_path_leads_to_what_it_names(text: str, found: Any) -> None:
    """Names lead into objects, indexes and [*] into lists; null is there, and everything else is missing."""
    path = parse_path(text)
    assert find_value(path, VALUE) == found
    assert getter(path)(VALUE) == (None if found is MISSING else found)


@pytest.mark.parametrize(
    ("text", "position", "told"),
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
def test_what_is_no_path_is_told_with_its_place(text: str, position: int, told: str) -> None:
    """Each mistake has the position where the path goes wrong, what is wrong, and an example."""
    with pytest.raises(LanguageError) as raised:
        parse_path(text)
    assert raised.value.position == position
    assert told in raised.value.what
    assert raised.value.example


@given(paths)
def test_a_printed_path_parses_to_itself(path: ValuePath) -> None:
    """Whatever names it holds."""
    assert parse_path(str(path)) == path


def test_words_of_the_filter_language_are_printed_in_quotes() -> None:
    """So that a printed path can stand in a filter."""
    assert str(ValuePath(("not", "AND", "Or", "note"))) == "['not']['AND']['Or'].note"


@given(st.text() | st.text("ab.[]*'\"-019 \\"))
def test_any_text_is_a_path_or_an_error_of_the_language(text: str) -> None:
    """The parser raises nothing else, and its position lies in the text or right behind."""
    position = 1
    try:
        parse_path(text)
    except LanguageError as error:
        position = error.position
    assert 1 <= position <= len(text) + 1


@given(
    paths,
    st.recursive(
        st.none() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)
    ),
)
def test_a_getter_finds_what_find_finds(path: ValuePath, value: Any) -> None:
    """With None for what is missing, in any value."""
    found = find_value(path, value)
    assert getter(path)(value) == (None if found is MISSING else found)


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_what_is_missing_is_explained_by_what_is_there(text: str, told: str) -> None:
    """The first step that leads nowhere is named, with what could have been meant."""
    assert told in explain_missing(parse_path(text), VALUE)
