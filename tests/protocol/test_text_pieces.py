"""Very long JSON strings are decoded and encoded in pieces, to the same texts as at once."""

import json
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol import text_pieces
from toold.protocol.text_pieces import decode_text, encode_text

texts = st.lists(
    st.sampled_from(["a", "\\", '"', "\n", "\x01", "\t", "\x7f", "é", "€", "😀", "\\u0041", "x" * 9]), max_size=40
).map("".join)


@pytest.fixture(scope="module", autouse=True)
def short_pieces() -> Iterator[None]:
    """Pieces of 16 bytes, so that short examples are split."""
    patch = pytest.MonkeyPatch()
    patch.setattr(text_pieces, "PIECE_BYTES", 16)
    yield
    patch.undo()


@given(texts, st.booleans())
def test_a_string_is_decoded_as_at_once(text: str, escaped: bool) -> None:
    """No piece ends within an escape, a surrogate pair or a character."""
    data = json.dumps(text, ensure_ascii=escaped).encode()
    assert decode_text(data, msgspec.json.decode) == text


@given(texts)
def test_a_string_is_encoded_as_at_once(text: str) -> None:
    """Byte for byte, in pieces and as one."""
    assert bytes(encode_text(text)) == msgspec.json.encode(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_pieces, "PIECE_BYTES", 1000)
        assert bytes(encode_text(text)) == msgspec.json.encode(text)


@pytest.mark.parametrize("wrong", [r"\ud800", r"\udc00", r"\x", "\x01", r"\u12"])
@pytest.mark.parametrize("before", range(20))
def test_a_wrong_string_is_rejected(wrong: str, before: int) -> None:
    """Wherever it is cut."""
    with pytest.raises(msgspec.DecodeError):
        decode_text(b'"%b"' % ("x" * before + wrong + "y" * 30).encode(), msgspec.json.decode)
