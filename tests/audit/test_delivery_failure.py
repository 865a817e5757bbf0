"""Delivery failures are classified as ``later``, ``setup`` or ``refused``."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.audit.delivery_failure import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MAX_REASON_CHARS,
    classify_response,
    pause_s,
    unreachable,
)


def body(code: str | None, message: str = "words") -> bytes:
    return json.dumps({"code": code, "message": message, "details": None, "hint": None}).encode()


@pytest.mark.parametrize(
    ("status", "answer", "failure_kind"),
    [
        # The rows: SQLSTATE classes 22, 23 and 54, and 4xx responses about the sent data.
        (400, body("23514"), "refused"),  # check constraint
        (409, body("23505"), "refused"),  # unique
        (400, body("22P05"), "refused"),  # an invalid character in text
        (500, body("54000"), "refused"),  # program limit
        (400, body("P0001"), "refused"),  # raised by a trigger
        (413, b"<html>too large</html>", "refused"),
        # Later: servers and gateways that fail or are overloaded.
        (500, body("XX000"), "later"),
        (500, body("57014"), "later"),  # statement timeout
        (503, body("PGRST001"), "later"),  # no connection to the database
        (504, body("PGRST003"), "later"),
        (502, b"", "later"),
        (522, b"<html>", "later"),
        (429, b"{}", "later"),
        (408, b"[]", "later"),
        # The setup: the key, the address, the tables.
        (401, b'{"message":"Invalid API key"}', "setup"),
        (401, body("PGRST301"), "setup"),  # not a JWT of this project
        (401, body("42501"), "setup"),  # the anon key
        (403, body("42501"), "setup"),
        (404, body("PGRST205"), "setup"),  # missing table: migrations not applied
        (400, body("PGRST204"), "setup"),  # missing column: migrations too old
        (400, body("42703"), "setup"),
        (400, body("42P10"), "setup"),
        (404, b"<html>", "setup"),
        (301, b"", "setup"),
    ],
)
def test_responses_are_classified(status: int, answer: bytes, failure_kind: str) -> None:
    """Faults of the rows, temporary faults and faults of the setup are distinguished."""
    assert classify_response(status, answer).kind == failure_kind


def test_setup_failure_has_a_remedy() -> None:
    """The advice names the setting or the directory to check."""
    assert "SUPABASE_SERVICE_ROLE_KEY" in str(classify_response(401, b""))
    assert "TOOLD_SUPABASE_URL" in classify_response(404, b"").advice
    for code in ("PGRST204", "PGRST205", "42703"):
        assert classify_response(400, body(code)).advice == "apply all files of supabase/migrations, in their order"


def test_reason_does_not_quote_values() -> None:
    """The reason of a data exception is only its code, because the message quotes the data."""
    assert classify_response(400, body("22P02", 'invalid input syntax: "my words"')).reason == "22P02"


@given(st.integers(100, 599), st.binary() | st.text().map(lambda text: body("P0001", text)))
def test_reason_is_one_line_of_limited_length(status: int, answer: bytes) -> None:
    """The reason of any response is one line of limited length."""
    reason = classify_response(status, answer).reason
    assert len(reason) <= MAX_REASON_CHARS
    assert len(reason.splitlines()) == 1


def test_secrets_do_not_reach_the_reason() -> None:
    """A key that a gateway quotes is not in the reason."""
    secret = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmF0dXJlCg"
    assert secret not in classify_response(401, body(None, f"bad key {secret}")).reason


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ReadTimeout("")])
def test_unreachable_server_is_retried(error: Exception) -> None:
    """A broken connection or a missing answer is retried; the reason names it."""
    failure = unreachable(error)
    assert failure.kind == "later"
    assert (str(error) or type(error).__name__) in failure.reason


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_pauses_grow_to_their_limit(failures: int, chance: float) -> None:
    """Each pause is between half and all of a window that doubles up to its limit."""
    whole = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 20))
    assert whole / 2 <= pause_s(failures, chance) <= whole
    assert (pause_s(failures, 0), pause_s(failures, 1)) == (whole / 2, whole)
