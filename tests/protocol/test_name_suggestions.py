"""Suggestions for misspelt names, and their cost."""

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.name_suggestions import MAX_WORD_CHARS, as_sentence, close_names, did_you_mean

SRC = Path(__file__).parents[2] / "src"


def test_close_names_come_closest_first() -> None:
    """Up to the requested number; names that are not similar are omitted."""
    known = ["chat", "codereview", "codeview", "echo"]
    assert close_names("codereveiw", known) == ["codereview", "codeview"]
    assert close_names("codereveiw", known, n=1) == ["codereview"]
    assert close_names("zzz", known) == []


def test_case_is_ignored() -> None:
    """Suggestions have their original spelling."""
    assert close_names("EHCO", ["Echo"]) == ["Echo"]


@given(st.text(), st.lists(st.text()))
def test_only_known_names_are_suggested(word: str, known: list[str]) -> None:
    """Each at most once."""
    decoded = close_names(word, known)
    assert set(decoded) <= set(known)
    assert len(decoded) == len(set(decoded)) <= 3


def test_long_words_cost_no_more_than_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first 100 characters are compared."""
    compared: list[int] = []
    set_seq2 = difflib.SequenceMatcher.set_seq2

    def counting(matcher: difflib.SequenceMatcher[str], b: str) -> None:
        compared.append(len(b))
        set_seq2(matcher, b)

    monkeypatch.setattr(difflib.SequenceMatcher, "set_seq2", counting)
    assert close_names("echo" * 2_500_000, ["echo", "chat"]) == []
    assert compared
    assert max(compared) <= MAX_WORD_CHARS


def test_no_other_module_compares_names() -> None:
    """This is the only one that looks for similar names, so its limit always applies."""
    compares = re.compile("get_close_matches|quick_ratio")
    users = [path.name for path in SRC.rglob("*.py") if compares.search(path.read_text(encoding="utf-8"))]
    assert users == ["name_suggestions.py"]


def test_did_you_mean() -> None:
    """One name, several, or none."""
    assert did_you_mean(["chat"]) == "did you mean 'chat'?"
    assert did_you_mean(["chat", "echo"]) == "did you mean 'chat' or 'echo'?"
    assert did_you_mean([]) == ""


def test_a_question_gets_no_full_stop() -> None:
    """Text that ends a sentence is unchanged; other text gets a full stop."""
    assert as_sentence("a is wrong") == "a is wrong."
    assert as_sentence("a is wrong.") == "a is wrong."
    assert as_sentence("a is wrong; did you mean 'b'?") == "a is wrong; did you mean 'b'?"
