"""JSON as others write it."""

import json

from hypothesis import given
from hypothesis import strategies as st
from toold.sources.json_text import without_halves

UNITS = st.lists(st.sampled_from(["\ud83d", "\ude00", "\\", "u", "d83d", "\n", '"', "x", "\U0001f600"])).map("".join)


@given(UNITS)
def test_halves_of_pairs_are_replaced_and_nothing_else(text: str) -> None:
    """As who reads UTF-16 does it."""
    mended = without_halves(json.dumps({"text": text}).encode())
    assert json.loads(mended)["text"] == text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
