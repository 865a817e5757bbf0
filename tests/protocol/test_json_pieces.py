"""Decoding in pieces gives the same values, and bounds their number."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from toold.protocol import json_pieces
from toold.protocol.json_pieces import (
    MAX_LEVELS,
    MAX_VALUES,
    PIECE_OF_FEW_BYTES,
    TooComplexError,
    TooManyValuesError,
    decode_in_pieces,
    finite,
)

PARAGRAPH = 'commas, [brackets], {braces}, "quotes" and \\backslashes\\, '


@pytest.fixture(autouse=True, scope="module")
def short_pieces() -> Any:
    """Pieces of 24 bytes, so that short examples are split."""
    patch = pytest.MonkeyPatch()
    patch.setattr(json_pieces, "PIECE_BYTES", 24)
    patch.setattr(json_pieces, "PIECE_OF_FEW_BYTES", 24)
    yield
    patch.undo()


def count(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, parts))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6),
    max_leaves=40,
)


@given(values, st.sampled_from([None, 1]))
def test_the_values_are_those_of_a_decoder(value: Any, indent: int | None) -> None:
    """For any text and any split, with and without white space."""
    data = json.dumps(value, indent=indent).encode()
    assert repr(decode_in_pieces(data)) == repr(json.loads(data))
    assert repr(decode_in_pieces(data, max_values=None)) == repr(json.loads(data))


@given(values, st.integers(0, 50))
@example([None, None, None, None, [], {"": None, "0": None}], 9)
@example([None, [None, None, None, None], {"": None, "0": None, "1": None, ",": None, "00": None}], 13)
@example(
    {"a": [None, "a text that is longer than one piece", None], "b": [None, "a text that is longer than one piece"]}, 6
)
def test_values_are_counted_exactly(value: Any, limit: int) -> None:
    """What looks like structure within a text is not counted."""
    data = json.dumps(value).encode()
    if count(value) <= limit:
        assert repr(decode_in_pieces(data, max_values=limit)) == repr(json.loads(data))
    elif limit <= count(value) - 2:  # an upper bound is checked first, which may exceed the number by one
        with pytest.raises(TooManyValuesError):
            decode_in_pieces(data, max_values=limit)


@given(st.binary(max_size=200))
def test_what_is_not_json_raises_what_a_decoder_raises(data: bytes) -> None:
    """No other exception."""
    try:
        expected = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
            decode_in_pieces(data)
    else:
        assert repr(decode_in_pieces(data)) == repr(expected)


def test_a_long_text_is_one_value() -> None:
    """Its commas and brackets are not counted."""
    texts = [PARAGRAPH * 10] * 500
    data = json.dumps({"texts": texts, "one": PARAGRAPH * 20_000}).encode()
    assert data.count(b",") > MAX_VALUES
    assert decode_in_pieces(data)["texts"] == texts


def test_too_many_values_are_rejected_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five million empty lists would take gigabytes."""
    for name in ("_decode", "_items_of", "_fields_of"):
        monkeypatch.setattr(json_pieces, name, None)
    many = MAX_VALUES + 1
    for data in (b"[%b]" % (b"[]," * many), b'{"a":[%b]}' % (b'"x,",' * many)):
        with pytest.raises(TooManyValuesError):
            decode_in_pieces(data)


def test_long_values_at_too_many_levels_are_rejected() -> None:
    """Splitting each level costs a pass over the rest."""
    inner = b'"%b"' % (b"x" * PIECE_OF_FEW_BYTES)
    assert decode_in_pieces(b"[" * (MAX_LEVELS - 1) + inner + b"]" * (MAX_LEVELS - 1))
    with pytest.raises(TooComplexError, match=f"more than {MAX_LEVELS} levels"):
        decode_in_pieces(b"[" * (MAX_LEVELS + 1) + inner + b"]" * (MAX_LEVELS + 1))


def test_a_long_integer_is_rejected() -> None:
    """Reading and writing it takes time quadratic in its length. A shorter one counts several times."""
    assert decode_in_pieces(b"[%d]" % 2**1000) == [2**1000]
    with pytest.raises(TooComplexError, match="more than 1024 bits"):
        decode_in_pieces(b"[%d]" % 2**1024)
    many = b",".join([b"%d" % 2**1000] * 40)
    assert len(decode_in_pieces(b"[%b]" % many)) == 40
    with pytest.raises(TooManyValuesError):
        decode_in_pieces(b"[%b]" % many, max_values=500)


def test_numbers_with_large_exponents_are_read_like_any_other() -> None:
    """msgspec alone takes twenty times as long for them."""
    assert decode_in_pieces(b"[1.5e300, 1e22, -2.5e-308]") == [1.5e300, 1e22, -2.5e-308]
    with pytest.raises(ValueError, match="out of range"):
        finite("1e999")
    with pytest.raises(msgspec.DecodeError, match="out of range"):
        decode_in_pieces(b"[1e999]")
