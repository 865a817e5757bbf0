"""What others wrote, as comments and docstrings that stay such."""

import ast
import io
import tokenize

from hypothesis import given
from hypothesis import strategies as st
from toold.tools.stubs.stub_text import comment, docstring, first_sentence


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
