"""JSON as others write it."""

import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from toold.sources.json_surrogates import LoneSurrogates, without_halves

UNITS = st.lists(st.sampled_from(["\ud83d", "\ude00", "\\", "u", "d83d", "\n", '"', "x", "\U0001f600"])).map("".join)


@given(UNITS)
def test_halves_of_pairs_are_replaced_and_nothing_else(text: str) -> None:
    """As who reads UTF-16 does it."""
    mended = without_halves(json.dumps({"text": text}).encode())
    assert json.loads(mended)["text"] == text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


@given(UNITS, st.lists(st.integers(0, 60)))
def test_it_makes_no_difference_how_a_text_comes(text: str, cuts: list[int]) -> None:
    """In pieces that end anywhere, it is the same, and as long."""
    whole = json.dumps({"text": text}).encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    halves = LoneSurrogates()
    pieces = [halves.out_of(whole[begin:end]) for begin, end in pairwise(places)]
    assert b"".join([*pieces, halves.begun]) == without_halves(whole)
    assert len(without_halves(whole)) == len(whole)


def test_escapes_that_are_no_halves_are_passed_over() -> None:
    """JSON within a text is full of them, and an answer of megabytes would hold everybody up; the last one is looked
    at, since it may go on in the next piece.
    """
    looked: list[bytes] = []

    class Watched(LoneSurrogates):
        def _told(self, found: re.Match[bytes]) -> bytes:
            looked.append(found[0])
            return super()._told(found)

    halves = Watched()
    ordinary = rb"{\"a\": \"\\n\u0434\"}" * 1000
    assert halves.out_of(ordinary + rb"\\\u") == ordinary + rb"\\"
    assert looked == [rb"\\", rb"\u"]
    assert halves.out_of(b"d83d!") == rb"\ufffd!"
