"""The digest of a call's arguments depends on their canonical JSON alone."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from toold.protocol import arguments_digest as module
from toold.protocol.arguments_digest import arguments_digest, is_digest_of, same_arguments, whole_digest

texts = st.text(max_size=4) | st.text("ab", min_size=module.LONG_TEXT_CHARS - 1, max_size=module.LONG_TEXT_CHARS + 1)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(arguments, arguments)
def test_two_digests_are_equal_if_the_canonical_json_is(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Also with long texts, at any level."""
    assert (arguments_digest(one) == arguments_digest(other)) is same_arguments(one, other)


@given(arguments)
def test_neither_order_nor_spelling_matters(one: dict[str, Any]) -> None:
    """Arguments that were sent again with other bytes have the same digest."""
    again = json.loads(json.dumps(dict(reversed(one.items())), indent=1, ensure_ascii=True))
    assert arguments_digest(again) == arguments_digest(one)


@given(arguments, arguments)
def test_a_digest_of_an_earlier_version_is_recognised(one: dict[str, Any], other: dict[str, Any]) -> None:
    """And that of other arguments is not."""
    stored = whole_digest(one)
    assert is_digest_of(stored, one)
    assert is_digest_of(stored, one, arguments_digest(one))
    assert is_digest_of(stored, other) is same_arguments(one, other)


def test_the_digest_of_short_arguments_is_that_of_earlier_versions() -> None:
    """Calls that the journal has are recognised without a second digest."""
    for short in ({}, {"text": "x" * module.LONG_TEXT_CHARS}, {"a": [1, {"b": None}]}):
        assert arguments_digest(short) == whole_digest(short)


def test_a_text_that_looks_like_a_hash_is_not_one() -> None:
    """No short text has the digest of a long one."""
    long = {"text": "x" * (module.LONG_TEXT_CHARS + 1)}
    hashed = bytes(module._with_hashed_texts(long, 1)["text"]).decode()
    assert arguments_digest({"text": hashed}) != arguments_digest(long)
