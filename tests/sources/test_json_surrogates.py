"""Lone surrogates in JSON text are replaced."""

import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from toold.sources.json_surrogates import LoneSurrogates, replace_lone_surrogates

UNITS = st.lists(st.sampled_from(["\ud83d", "\ude00", "\\", "u", "d83d", "\n", '"', "x", "\U0001f600"])).map("".join)


@given(UNITS)
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    """As a UTF-16 decoder replaces them."""
    repaired = replace_lone_surrogates(json.dumps({"text": text}).encode())
    assert json.loads(repaired)["text"] == text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


@given(UNITS, st.lists(st.integers(0, 60)))
def test_chunk_boundaries_do_not_matter(text: str, cuts: list[int]) -> None:
    """The result is the same, and has the size of the input."""
    whole = json.dumps({"text": text}).encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    replacer = LoneSurrogates()
    chunks = [replacer.replace(whole[begin:end]) for begin, end in pairwise(places)]
    assert b"".join([*chunks, replacer.partial]) == replace_lone_surrogates(whole)
    assert len(replace_lone_surrogates(whole)) == len(whole)


def test_other_escapes_are_skipped_quickly() -> None:
    """JSON within a string is full of escapes, and large answers would block the loop; only the last one is matched,
    since it may continue in the next chunk.
    """
    matched: list[bytes] = []

    class WatchedReplacer(LoneSurrogates):
        def _replacement(self, found: re.Match[bytes]) -> bytes:
            matched.append(found[0])
            return super()._replacement(found)

    replacer = WatchedReplacer()
    ordinary = rb"{\"a\": \"\\n\u0434\"}" * 1000
    assert replacer.replace(ordinary + rb"\\\u") == ordinary + rb"\\"
    assert matched == [rb"\\", rb"\u"]
    assert replacer.replace(b"d83d!") == rb"\ufffd!"
