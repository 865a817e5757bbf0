"""What is offered for a misspelt name, and what offering it costs."""

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.name_suggestions import MAX_WORD_CHARS, as_sentence, close_names, did_you_mean

SRC = Path(__file__).parents[2] / "src"


def test_close_names_come_closest_first() -> None:
    """Names that are close are given, the closest first and no more than asked for; others are not."""
    known = ["chat", "codereview", "codeview", "echo"]
    assert close_names("codereveiw", known) == ["codereview", "codeview"]
    assert close_names("codereveiw", known, n=1) == ["codereview"]
    assert close_names("zzz", known) == []


def test_capitals_do_not_matter() -> None:
    """A name is found however it is capitalised, and given as it is spelt."""
    assert close_names("EHCO", ["Echo"]) == ["Echo"]


@given(st.text(), st.lists(st.text()))
def test_only_known_names_are_offered(word: str, known: list[str]) -> None:
    """Whatever is asked for, what is offered exists, and is offered once."""
    found = close_names(word, known)
    assert set(found) <= set(known)
    assert len(found) == len(set(found)) <= 3


def test_a_word_of_megabytes_costs_no_more_than_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the first 100 characters are ever compared."""
    compared: list[int] = []
    set_seq2 = difflib.SequenceMatcher.set_seq2

    def counting(matcher: difflib.SequenceMatcher[str], b: str) -> None:
        compared.append(len(b))
        set_seq2(matcher, b)

    monkeypatch.setattr(difflib.SequenceMatcher, "set_seq2", counting)
    assert close_names("echo" * 2_500_000, ["echo", "chat"]) == []
    assert compared
    assert max(compared) <= MAX_WORD_CHARS


def test_nobody_else_compares_names() -> None:
    """This is the one place that looks for close names, so that the bound holds for all."""
    compares = re.compile("get_close_matches|SequenceMatcher")
    users = [path.name for path in SRC.rglob("*.py") if compares.search(path.read_text(encoding="utf-8"))]
    assert users == ["name_suggestions.py"]


def test_the_offer_in_words() -> None:
    """One name, several, or nothing to offer."""
    assert did_you_mean(["chat"]) == "did you mean 'chat'?"
    assert did_you_mean(["chat", "echo"]) == "did you mean 'chat' or 'echo'?"
    assert did_you_mean([]) == ""


def test_a_question_gets_no_full_stop() -> None:
    """What ends as a sentence stays; all else gets its full stop."""
    assert as_sentence("a is wrong") == "a is wrong."
    assert as_sentence("a is wrong.") == "a is wrong."
    assert as_sentence("a is wrong; did you mean 'b'?") == "a is wrong; did you mean 'b'?"
