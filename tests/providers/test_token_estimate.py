"""The local token estimate. The live tests in test_contract.py compare it with the vendors' counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers import estimate_text
from toold.providers.token_estimate import TOKENS_PER_IMAGE, TOKENS_PER_MESSAGE, estimate_body


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("one two three", 3),
        ("internationalisation", 4),
        ("123456789", 3),
        ("一二三四五六七八九十", 6),
        ("    indented", 3),
        ("a\n\nb", 3),
        ("foo(bar)", 4),
        ("привет", 3),
        ("🎉", 1),
    ],
)
def test_character_classes_have_different_weights(text: str, tokens: int) -> None:
    """Words count by length, digits in groups of three, ideographs individually, punctuation in pairs. Single spaces do
    not count.
    """
    assert estimate_text(text) == tokens


@pytest.mark.slow
@given(st.text(max_size=300), st.text(max_size=300))
def test_longer_text_never_has_fewer_tokens(before: str, after: str) -> None:
    """A longer text never counts less, and the estimate stays between a ninth and twice the number of characters."""
    assert estimate_text(before + "\n" + after) + 1 >= estimate_text(before)
    assert len(before) / 9 - 1 <= estimate_text(before) + before.count(" ") <= 2 * len(before) + 1


def test_long_texts_are_estimated() -> None:
    """The estimate handles texts of several megabytes."""
    for text in ("word " * 500_000, " " * 2_500_000, "一" * 1_000_000, "(" * 2_500_000):
        assert estimate_text(text) > 0


def test_messages_tools_and_images_count() -> None:
    """Each message adds its overhead, an image its flat rate, and a tool schema its words."""
    plain = estimate_body({"messages": [{"role": "user", "content": "one two"}]})
    assert plain == 2 + TOKENS_PER_MESSAGE
    picture = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}]}
    assert estimate_body({"messages": [picture]}) == 1 + TOKENS_PER_IMAGE + TOKENS_PER_MESSAGE
    thought = {"role": "assistant", "content": "", "reasoning_content": "one two three"}
    assert estimate_body({"messages": [thought]}) == 3 + TOKENS_PER_MESSAGE
    tool = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
    assert estimate_body({"messages": [], "tools": [tool]}) >= 6
