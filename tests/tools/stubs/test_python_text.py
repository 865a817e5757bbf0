"""Python names, comments and docstrings."""

import ast
import io
import keyword
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.tools.stubs.python_text import camel, comment, docstring, first_sentence, is_identifier, unique_identifiers


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
    assert unique_identifiers([name], kind="tool", reserved=frozenset({"list"})) == {name: becomes}


def test_names_that_would_be_the_same_are_told_apart() -> None:
    """The one that is an identifier keeps its name; the others have letters of their own."""
    names = unique_identifiers(["a-b", "a_b", "a.b"], kind="tool")
    assert names["a_b"] == "a_b"
    assert names["a-b"].startswith("a_b_")
    assert names["a.b"].startswith("a_b_")
    assert len(set(names.values())) == 3


def test_a_name_stays_while_others_come_and_go() -> None:
    """Code that was written for one stays right, whichever of its likes is there."""
    two, three = (
        unique_identifiers(["a-b", "a_b"], kind="tool"),
        unique_identifiers(["a-b-", "a_b", "a-b", "c"], kind="tool"),
    )
    assert three["a-b"] == two["a-b"]


@given(st.sets(st.text(max_size=8) | st.sampled_from(["a-b", "a_b", "a.b", "a b", "class", "class_", "if", "A-b"])))
def test_it_is_one_to_one_and_in_any_order_the_same(names: set[str]) -> None:
    """Every name can be written in code, and no two are the same."""
    given_names = unique_identifiers(sorted(names), kind="tool", reserved=frozenset({"a_b"}))
    assert given_names == unique_identifiers(sorted(names, reverse=True), kind="tool", reserved=frozenset({"a_b"}))
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


def test_a_first_sentence_is_on_one_line_and_cut_at_a_word() -> None:
    """Spaces and lines are one space; what is long ends with an ellipsis."""
    assert first_sentence("Find a\n  contact. Then more.", 50) == "Find a contact"
    assert first_sentence("Find a contact by its name.", 16) == "Find a contact…"
    assert first_sentence("\x00\ud800", 50) == ""


def test_a_comment_tells_a_type_checker_nothing() -> None:
    """``# type: …`` would be read as one."""
    assert comment("type: ignore", 50) == "  # 'type: ignore'"
    assert comment("noqa", 50) == "  # 'noqa'"
    assert comment("The type: a word", 50) == "  # The type: a word"
    assert comment(" ", 50) == ""


def test_a_docstring_is_a_sentence() -> None:
    """With its full stop; in another notation where quotes would end it."""
    assert docstring("Find it. More.", 50) == '"""Find it."""'
    assert docstring("Is it there?", 50) == '"""Is it there?"""'
    assert docstring('Say """', 50) == '\'Say """.\''


@given(st.text())
def test_whatever_is_written_stays_words(text: str) -> None:
    """No text ends the comment or the docstring that it stands in."""
    assert isinstance(ast.literal_eval(docstring(text, 60)), str)
    kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(f"a{comment(text, 60)}\n").readline)]
    assert kinds.count(tokenize.NAME) == 1
    assert kinds.count(tokenize.NEWLINE) == 1
