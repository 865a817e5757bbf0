"""JSON from outside is parsed, or refused with one error."""

import pytest
from toold.protocol.json_text import InvalidJsonError, parse_json


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting property name"),
        (b"\xff\xfe\xfa", "decode"),
        ("9" * 5000, "digits"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a":' * 100_000, "it is nested too deeply"),
    ],
)
def test_what_cannot_be_parsed_is_one_error(text: str | bytes, says: str) -> None:
    """Python's parser raises four kinds of errors, one of which is not a ValueError."""
    with pytest.raises(InvalidJsonError, match=says):
        parse_json(text)


def test_json_is_parsed() -> None:
    """As text and as bytes."""
    assert parse_json('{"a": [1]}') == parse_json(b'{"a": [1]}') == {"a": [1]}
