"""The estimate of texts: what it adds up, and that long texts cost no time."""

from hypothesis import given
from hypothesis import strategies as st
from toold.providers import ESTIMATE_ERROR, estimate_text
from toold.tools import estimate_tokens
from toold.tools.asking.tokens import COUNTED_CHARS


@given(st.lists(st.text(max_size=100)))
def test_the_texts_add_up(texts: list[str]) -> None:
    """Short texts are counted whole, half surrogates too."""
    assert estimate_tokens([*texts, "\ud800"]) == sum(map(estimate_text, texts)) + estimate_text("\ud800")


def test_a_long_text_is_counted_by_samples() -> None:
    """Within the estimate's own error, also where one half is prose and the other numbers."""
    text = "some words of prose, again and again. " * 3_000 + "1234567890 " * 10_000
    assert len(text) > 3 * COUNTED_CHARS
    whole = estimate_text(text)
    assert abs(estimate_tokens([text]) - whole) < ESTIMATE_ERROR / 3 * whole
