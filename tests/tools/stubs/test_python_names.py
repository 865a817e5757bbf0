"""Names of others as Python's identifiers: one to one, and no other for what comes and goes beside them."""

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.tools.stubs.python_names import camel, is_identifier, mended


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("chat", "chat"),
        ("self-check", "self_check"),
        ("class", "class_"),
        ("None", "None_"),
        ("00_INIT", "tool_00_INIT"),
        ("__getattr__", "tool_getattr__"),
        ("_hidden", "tool_hidden"),
        ("$filter", "tool_filter"),
        ("---", "tool"),
        ("", "tool"),
        ("größe", "größe"),
        ("ﬁle", "_le".replace("_", "tool_")),
        ("a b.c", "a_b_c"),
        ("list", "list_"),
    ],
)
def test_a_name_becomes_an_identifier(name: str, becomes: str) -> None:
    """What is one already stays; keywords, reserved words and odd characters are mended."""
    assert mended([name], kind="tool", reserved=frozenset({"list"})) == {name: becomes}


def test_names_that_would_be_the_same_are_told_apart() -> None:
    """The one that is an identifier keeps its name; the others have letters of their own."""
    names = mended(["a-b", "a_b", "a.b"], kind="tool")
    assert names["a_b"] == "a_b"
    assert names["a-b"].startswith("a_b_")
    assert names["a.b"].startswith("a_b_")
    assert len(set(names.values())) == 3


def test_a_name_stays_while_others_come_and_go() -> None:
    """Code that was written for one stays right, whichever of its likes is there."""
    two, three = mended(["a-b", "a_b"], kind="tool"), mended(["a-b-", "a_b", "a-b", "c"], kind="tool")
    assert three["a-b"] == two["a-b"]


@given(st.sets(st.text(max_size=8) | st.sampled_from(["a-b", "a_b", "a.b", "a b", "class", "class_", "if", "A-b"])))
def test_it_is_one_to_one_and_in_any_order_the_same(names: set[str]) -> None:
    """Every name can be written in code, and no two are the same."""
    given_names = mended(sorted(names), kind="tool", reserved=frozenset({"a_b"}))
    assert given_names == mended(sorted(names, reverse=True), kind="tool", reserved=frozenset({"a_b"}))
    assert given_names.keys() == names
    assert len(set(given_names.values())) == len(names)
    for identifier in given_names.values():
        assert is_identifier(identifier)
        assert not keyword.iskeyword(identifier)
        assert not identifier.startswith("_")
        assert identifier != "a_b"


def test_class_names_have_no_underscores() -> None:
    """So that what stands before the first one is the function's."""
    assert camel("search_contacts-v2") == "SearchContactsV2"
    assert camel("größe²") == "GrE"
