"""The output of a program: stored up to a limit, and shown without its middle if it is long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sandbox import ProgramOutput
from toold.sandbox.program_output import MAX_OUTPUT_BYTES, SHOWN_BYTES, cut_in_the_middle


def test_short_output_is_shown_unchanged() -> None:
    """The output keeps the order of writes across stdout and stderr."""
    output = ProgramOutput()
    output.write("stdout", "a\n")
    output.write("stderr", "b\n")
    assert (output.text, output.shown, output.truncated) == ("a\nb\n", "a\nb\n", False)


def test_long_output_is_shown_without_its_middle() -> None:
    """The shown text states how many bytes are omitted; the stored text is complete."""
    output = ProgramOutput()
    output.write("stdout", "a" * SHOWN_BYTES + "z" * SHOWN_BYTES)
    assert output.truncated
    assert output.shown[:3] + output.shown[-3:] == "aaazzz"
    assert f"[… {SHOWN_BYTES:,} bytes omitted …]" in output.shown
    assert len(output.text) == 2 * SHOWN_BYTES


def test_excessive_output_is_reported_once() -> None:
    """Output after the limit is not stored."""
    output, reported = ProgramOutput(), list[bool]()
    output.on_limit = lambda: reported.append(True)
    for _ in range(5):
        output.write("stdout", "x" * (MAX_OUTPUT_BYTES // 2 + 1))
    assert reported == [True]
    assert len(output.text) <= 2 * MAX_OUTPUT_BYTES


@given(st.text(max_size=200), st.integers(2, 100))
def test_the_middle_of_a_long_text_is_omitted(text: str, most: int) -> None:
    """The beginning and the end are from the text and together fit the limit."""
    cut = cut_in_the_middle(text, most)
    if len(text.encode()) <= most:
        assert cut == text
        return
    head, _, tail = cut.rpartition(" bytes omitted …]\n")
    head = head.rpartition("\n[… ")[0]
    assert (text[: len(head)], text[len(text) - len(tail) :]) == (head, tail)
    assert len(head.encode()) + len(tail.encode()) <= most


def test_a_cut_does_not_split_a_character() -> None:
    """Characters of several bytes stay whole."""
    assert cut_in_the_middle("ééééé", 5).encode().decode().count("é") == 2


@pytest.mark.parametrize("text", ["", "x"])
def test_a_short_text_is_unchanged(text: str) -> None:
    """A text that fits the limit is not changed."""
    assert cut_in_the_middle(text, 1) == text
