"""The example that replaces personal data."""

import json
import subprocess
import sys

import pytest
from toold.hook_examples import redact_personal_data as example
from toold.hook_examples.redact_personal_data import answer, redacted_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mail ann.o-k+x@mail.example.org, please.", "Mail [email], please."),
        ("Pay to DE89 3704 0044 0532 0130 00 now", "Pay to [iban] now"),
        ("GB82WEST12345698765432.", "[iban]."),
        ("card 4111 1111 1111 1111,", "card [card],"),
        ("card 378282246310005", "card [card]"),
        ("SSN 078-05-1120", "SSN [ssn]"),
        ("call +49 (30) 901820-0 today", "call [phone] today"),
        ("call 0049 30 901820", "call [phone]"),
    ],
)
def test_what_is_replaced(text: str, expected: str) -> None:
    """By its form and its check digits."""
    assert redacted_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "order 4111111111111112",  # wrong check digit
        "DE89 3704 0044 0532 0130 01",
        "COUNT 37040044053201300",
        "2026-11-27T19:30:00+01:00 took 1234567890123 ns",
        "version 1.2.3.4, port 8080, 20 %",
        "user@host and @handle",
        "id 550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_what_stays(text: str) -> None:
    """Numbers that only look alike."""
    assert redacted_text(text) == text


def test_all_texts_of_a_result_are_read_but_files_are_not() -> None:
    """Nested data, names of fields, errors; not the bytes of images."""
    result = {
        "content": [
            {"type": "text", "text": "ann@x.example"},
            {"type": "image", "data": "+4930901820", "mimeType": "m"},
        ],
        "structuredContent": {"people": [{"mail": "bob@x.example", "age": 7}], "ann@x.example": True},
        "error": {"message": "no ann@x.example"},
    }
    assert answer({"event": "after", "result": result}) == {
        "result": {
            "content": [{"type": "text", "text": "[email]"}, {"type": "image", "data": "+4930901820", "mimeType": "m"}],
            "structuredContent": {"people": [{"mail": "[email]", "age": 7}], "[email]": True},
            "error": {"message": "no [email]"},
        }
    }
    assert answer({"event": "before", "arguments": {"n": 1}}) == {}


@pytest.mark.process
def test_it_is_a_program_of_its_own() -> None:
    """It runs as a copy, without toold."""
    question = {"id": 4, "event": "before", "call": {}, "arguments": {"to": "ann@x.example"}}
    run = subprocess.run(
        [sys.executable, "-I", "-S", example.__file__],
        input=json.dumps(question),
        check=True,
        text=True,
        capture_output=True,
    )
    assert (json.loads(run.stdout), run.stderr) == ({"id": 4, "arguments": {"to": "[email]"}}, "")
