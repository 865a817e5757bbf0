"""How much of the results of a turn a model reads, and where it finds the rest."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.tools import estimate_tokens
from toold.tools.agents.turn_results import MAX_RESULT_CHARS, read_chars, shortened, tokens_of_turn

from .hosted import Hosted, calls, script

TEXTS = st.lists(st.tuples(st.sampled_from(["word ", "漢", "{}", "x"]), st.integers(0, 20_000)), min_size=1, max_size=8)


@given(TEXTS, st.integers(2000, 32_000))
def test_all_results_of_a_turn_have_one_limit(shapes: list[tuple[str, int]], tokens: int) -> None:
    """Together they exceed the limit by rounding only, no text gets less than a shorter one, and short ones stay."""
    texts = [text * times for text, times in shapes]
    chars = read_chars(texts, tokens)
    read = [text[:length] for text, length in zip(texts, chars, strict=True)]
    assert estimate_tokens(read) <= tokens * 1.05 + len(texts) * 200
    assert all(length <= MAX_RESULT_CHARS for length in chars)
    for text, length in zip(texts, chars, strict=True):
        if len(text) <= min(200, tokens // len(texts)):
            assert length == len(text)


def test_a_shortened_text_says_what_is_left_out() -> None:
    """Its beginning and end remain, with a note between them."""
    assert shortened("a" * 20 + "b" * 10, 15) == "a" * 10 + "\n[… 15 characters omitted …]\n" + "b" * 5
    assert '"handle": "h1"' in shortened("a" * 30, 15, "h1")


def test_an_unknown_window_counts_as_a_small_one() -> None:
    """The limit of a turn is a fourth of the window, at most 32,000 tokens."""
    assert [tokens_of_turn(window) for window in (0, 8000, 1_000_000)] == [8192, 2000, 32_000]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_model_reads_long_results_in_part_and_all_of_them_by_handles(hosted: Hosted) -> None:
    """The results of a turn fit into a fourth of the window together; ``read_result`` reads the rest."""
    long = ("fill", {"text": "word ", "times": 5000})
    answer = await hosted.ask("narrow", script(calls(long, long, ("fill", {"text": "short", "times": 1})), "done"))
    assert answer.structured["answer"] == "done"
    (messages,) = hosted.sent()
    first, second, short = [row["content"] for row in messages[3:]]
    assert estimate_tokens((first, second, short)) < 2200
    assert short == "short"
    handle = re.search(r'"handle": "([^"]+)"', second)
    assert handle is not None
    page = await hosted.client.call("read_result", {"handle": handle[1], "offset": 24_995})
    assert page.structured["text"] == "word "


@pytest.mark.asyncio(loop_scope="module")
async def test_a_role_that_cannot_read_handles_gets_none(hosted: Hosted) -> None:
    """Nothing is stored for a role without ``read_result``."""
    await hosted.ask("narrow_writer", script(calls(("fill", {"text": "word ", "times": 5000})), "done"))
    assert "omitted …]" in hosted.sent()[0][-1]["content"]
