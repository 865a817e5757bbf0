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
    """Valid identifiers are unchanged; keywords, reserved names and invalid characters are replaced."""
    assert unique_identifiers([name], kind="tool", reserved=frozenset({"list"})) == {name: becomes}


def test_colliding_names_get_different_identifiers() -> None:
    """The name that already is an identifier is unchanged; the others get a suffix."""
    names = unique_identifiers(["a-b", "a_b", "a.b"], kind="tool")
    assert names["a_b"] == "a_b"
    assert names["a-b"].startswith("a_b_")
    assert names["a.b"].startswith("a_b_")
    assert len(set(names.values())) == 3


def test_an_identifier_does_not_depend_on_other_names() -> None:
    """Existing programs stay valid when tools with similar names are added or removed."""
    two, three = (
        unique_identifiers(["a-b", "a_b"], kind="tool"),
        unique_identifiers(["a-b-", "a_b", "a-b", "c"], kind="tool"),
    )
    assert three["a-b"] == two["a-b"]


@given(st.sets(st.text(max_size=8) | st.sampled_from(["a-b", "a_b", "a.b", "a b", "class", "class_", "if", "A-b"])))
def test_identifiers_are_unique_and_independent_of_order(names: set[str]) -> None:
    """Every name gets a valid identifier, and no two names get the same one."""
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
    """The part of a class name before the first underscore is the name of the function."""
    assert camel("search_contacts-v2") == "SearchContactsV2"
    assert camel("größe²") == "GrE"


def test_a_first_sentence_is_one_line_and_truncated_at_a_word() -> None:
    """Whitespace is collapsed; a truncated sentence ends with an ellipsis."""
    assert first_sentence("Find a\n  contact. Then more.", 50) == "Find a contact"
    assert first_sentence("Find a contact by its name.", 16) == "Find a contact…"
    assert first_sentence("\x00\ud800", 50) == ""


def test_a_comment_is_not_a_type_comment() -> None:
    """Text that begins like a type comment is quoted."""
    assert comment("type: ignore", 50) == "  # 'type: ignore'"
    assert comment("noqa", 50) == "  # 'noqa'"
    assert comment("The type: a word", 50) == "  # The type: a word"
    assert comment(" ", 50) == ""


def test_a_docstring_is_one_sentence() -> None:
    """The sentence ends with a full stop; text with triple quotes gets a different notation."""
    assert docstring("Find it. More.", 50) == '"""Find it."""'
    assert docstring("Is it there?", 50) == '"""Is it there?"""'
    assert docstring('Say """', 50) == '\'Say """.\''


@given(st.text())
def test_any_text_stays_text(text: str) -> None:
    """No text can terminate its comment or docstring."""
    assert isinstance(ast.literal_eval(docstring(text, 60)), str)
    kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(f"a{comment(text, 60)}\n").readline)]
    assert kinds.count(tokenize.NAME) == 1
    assert kinds.count(tokenize.NEWLINE) == 1
