"""What a program prints: shown cut in the middle, kept up to a bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sandbox import ProgramOutput
from toold.sandbox.program_output import MAX_OUTPUT_BYTES, SHOWN_BYTES, cut_in_the_middle


def test_little_is_shown_as_it_is() -> None:
    """In the order in which it came, whichever stream it came by."""
    output = ProgramOutput()
    output.write("stdout", "a\n")
    output.write("stderr", "b\n")
    assert (output.text, output.shown, output.truncated) == ("a\nb\n", "a\nb\n", False)


def test_much_is_shown_by_its_beginning_and_its_end() -> None:
    """With how much is left out between them; all of it is kept."""
    output = ProgramOutput()
    output.write("stdout", "a" * SHOWN_BYTES + "z" * SHOWN_BYTES)
    assert output.truncated
    assert output.shown[:3] + output.shown[-3:] == "aaazzz"
    assert f"[… {SHOWN_BYTES:,} bytes omitted …]" in output.shown
    assert len(output.text) == 2 * SHOWN_BYTES


def test_too_much_is_told_once() -> None:
    """What comes after it is not kept."""
    output, told = ProgramOutput(), list[bool]()
    output.on_limit = lambda: told.append(True)
    for _ in range(5):
        output.write("stdout", "x" * (MAX_OUTPUT_BYTES // 2 + 1))
    assert told == [True]
    assert len(output.text) <= 2 * MAX_OUTPUT_BYTES


@given(st.text(max_size=200), st.integers(2, 100))
def test_what_is_cut_is_the_middle(text: str, most: int) -> None:
    """Both ends are the text's own, and together within the bound."""
    cut = cut_in_the_middle(text, most)
    if len(text.encode()) <= most:
        assert cut == text
        return
    head, _, tail = cut.rpartition(" bytes omitted …]\n")
    head = head.rpartition("\n[… ")[0]
    assert (text[: len(head)], text[len(text) - len(tail) :]) == (head, tail)
    assert len(head.encode()) + len(tail.encode()) <= most


def test_a_cut_never_halves_a_character() -> None:
    """Of those that have several bytes."""
    assert cut_in_the_middle("ééééé", 5).encode().decode().count("é") == 2


@pytest.mark.parametrize("text", ["", "x"])
def test_nothing_is_made_of_nothing(text: str) -> None:
    """A bound of any size leaves a short text alone."""
    assert cut_in_the_middle(text, 1) == text
