"""Messages with long texts and little else are decoded at once, to the same values as others."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from toold.protocol import long_texts
from toold.protocol.json_pieces import LONG_BYTES, finite
from toold.protocol.long_texts import AT_ONCE_BYTES, decode_long_texts, encode_answer, is_quick
from toold.protocol.tool_call import ContentBlock, ImageContent, Metadata, TextContent, Timings, ToolResult

LONG = "x" * LONG_BYTES

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "quick"),
    [
        (b"[1]" * 10_000, True),  # short, whatever it is
        (json.dumps({"text": LONG}).encode(), True),
        (json.dumps({"text": LONG + "\\", "more": LONG}).encode(), True),
        (json.dumps({"text": '\\"' * 100 + LONG}).encode(), True),
        (b'{"text":"%b' % LONG.encode(), True),  # its error is found at once, too
        (b"[" + b"[]," * LONG_BYTES + b"[]]", False),
        (json.dumps([LONG, *range(10_000)]).encode(), False),
        (json.dumps([LONG, *"x" * 2000]).encode(), False),
        (json.dumps(LONG + '"' * 3000).encode(), False),
        (b'["%b%b"]' % (LONG.encode(), b"\\" * 100), False),
        (json.dumps("x" * AT_ONCE_BYTES).encode(), False),
    ],
)
def test_a_message_with_long_texts_and_few_values_is_quick(data: bytes, quick: bool) -> None:
    """One with many values, many quotes or more text is not."""
    assert is_quick(data) is quick


@given(st.lists(st.sampled_from(["\\", '"', "x", "\n", LONG]), max_size=6).map("".join))
def test_the_ends_of_texts_are_found(text: str) -> None:
    """Whatever precedes a quote: commas and brackets in a text are not values."""
    assert is_quick(json.dumps([LONG, text + "," * 20_000, 1]).encode())


@given(values, st.booleans())
def test_it_is_decoded_as_by_msgspec(value: Any, escaped: bool) -> None:
    """Values and their types are the same with both parsers."""
    data = json.dumps([LONG, value], ensure_ascii=escaped).encode(errors="surrogatepass")
    assume(is_quick(data))
    expected = msgspec.json.Decoder(float_hook=finite).decode(data)
    assert repr(decode_long_texts(data)) == repr(expected)


@pytest.mark.parametrize(
    "wrong", ["1e999", "-1e999", "NaN", "Infinity", "01", "[1,]", "{1:2}", "\x01", '"\x01"', "x", "9" * 5000]
)
def test_what_is_not_json_is_rejected(wrong: str) -> None:
    """As in a short message."""
    with pytest.raises(msgspec.DecodeError):
        decode_long_texts(f'["{LONG}",{wrong}]'.encode())


def test_deep_nesting_is_decoded() -> None:
    """Deeper than one of the parsers accepts."""
    deep = b"[" * 300 + b"]" * 300
    assert decode_long_texts(b'["%b",%b]' % (LONG.encode(), deep)) == [LONG, json.loads(deep)]


@given(
    st.lists(st.sampled_from(["short", LONG + "x", LONG + "\n", "\x01" + LONG, LONG + '"', "\\" + LONG, LONG + "ü"])),
    st.integers(0, 40_000),
)
def test_an_answer_is_encoded_as_by_msgspec(texts: list[str], more: int) -> None:
    """Byte for byte, whatever its texts and the rest of it are."""
    image: ContentBlock = ImageContent("aGVsbG8=", "image/png")
    result = ToolResult(Metadata(1.0, Timings()), (*map(TextContent, texts), image), structured={"rest": "r" * more})
    assert encode_answer(result, msgspec.json.encode) == msgspec.json.encode(result)


def test_a_long_text_without_escapes_is_only_put_in_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escaping it would take longer. A text with a control character is escaped."""
    escaped: list[str] = []

    def encode(text: str) -> msgspec.Raw:
        escaped.append(text)
        return msgspec.Raw(b"1")

    monkeypatch.setattr(long_texts, "encode_text", encode)
    for text in (LONG + "x", LONG + "\x01"):
        encode_answer(ToolResult(Metadata(1.0, Timings()), (TextContent(text),)), msgspec.json.encode)
    assert escaped == [LONG + "\x01"]


def test_half_a_surrogate_pair_is_an_error() -> None:
    """As for short texts."""
    result = ToolResult(Metadata(1.0, Timings()), (TextContent(LONG + "\ud800"),))
    with pytest.raises(UnicodeEncodeError):
        encode_answer(result, msgspec.json.encode)
