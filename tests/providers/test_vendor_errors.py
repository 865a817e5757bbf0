"""The mapping of vendors' failures: one for all roads."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import (
    CallError,
    ContextLengthExceededError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from toold.providers import GLM, KIMI, VendorInfo
from toold.providers.vendor_errors import (
    MAX_MESSAGE_CHARS,
    NotThereError,
    VendorRefusal,
    clean,
    never_connected,
    not_understood,
    read_error,
    read_refusal,
    refused,
    timed_out,
    unreachable,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def judge(refusal: VendorRefusal, vendor: VendorInfo = KIMI) -> CallError:
    return refused(vendor, refusal, secret="sk-very-secret", now=NOW)


@pytest.mark.parametrize(
    ("vendor", "status", "code", "message", "error", "executed", "transient"),
    [
        (KIMI, 401, "invalid_authentication_error", "Invalid Authentication", ProviderError, "no", False),
        (KIMI, 403, "permission_denied_error", "not open", ProviderError, "no", False),
        (KIMI, 404, "resource_not_found_error", "Not found the model", NotThereError, "no", False),
        (KIMI, 429, "rate_limit_reached_error", "max RPM", RateLimitedError, "no", True),
        (KIMI, 429, "engine_overloaded_error", "overloaded", RateLimitedError, "no", True),
        (KIMI, 429, "exceeded_current_quota_error", "suspended", RateLimitedError, "no", False),
        (KIMI, 400, "content_filter", "high risk", ProviderError, "no", False),
        (
            KIMI,
            400,
            "invalid_request_error",
            "exceeded model token limit: 8192",
            ContextLengthExceededError,
            "no",
            False,
        ),
        (KIMI, 400, "invalid_request_error", "Input token length too long", ContextLengthExceededError, "no", False),
        (KIMI, 400, "invalid_request_error", "invalid temperature", ProviderError, "no", False),
        (KIMI, 500, "server_error", "oops", ServiceUnavailableError, "maybe", True),
        (KIMI, 408, "", "", ServiceUnavailableError, "maybe", True),
        (GLM, 401, "1002", "Token非法", ProviderError, "no", False),
        (GLM, 400, "1004", "expired", ProviderError, "no", False),
        (GLM, 429, "1113", "余额不足", RateLimitedError, "no", False),
        (GLM, 429, "1302", "并发", RateLimitedError, "no", True),
        (GLM, 400, "1261", "Prompt 超长", ContextLengthExceededError, "no", False),
        (GLM, 400, "1301", "敏感", ProviderError, "no", False),
        (GLM, 400, "1211", "模型不存在", ProviderError, "no", False),
        (GLM, 502, "", "<html>", ServiceUnavailableError, "maybe", True),
        (GLM, 0, "1301", "敏感", ProviderError, "maybe", False),
        (GLM, 0, "1234", "network", ProviderError, "maybe", False),
    ],
)
def test_each_code_has_its_error(
    vendor: VendorInfo, status: int, code: str, message: str, error: type[CallError], executed: str, transient: bool
) -> None:
    """Status and code decide the error, whether something was executed, and whether waiting helps."""
    judged = judge(VendorRefusal(status, code, message), vendor)
    assert type(judged) is error
    assert judged.executed == executed
    assert judged.transient is transient
    assert " ".join(message.split()) in judged.message


@given(
    st.sampled_from([KIMI, GLM]),
    st.integers(0, 999),
    st.text(max_size=30),
    st.text(max_size=2000),
    st.none() | st.text(max_size=40),
)
def test_any_refusal_has_an_error(
    vendor: VendorInfo, status: int, code: str, message: str, retry_after: str | None
) -> None:
    """Whatever a vendor writes, the caller gets one bounded error, on one line, that does not hold the key."""
    judged = judge(VendorRefusal(status, code, message + "sk-very-secret", retry_after), vendor)
    assert len(judged.message) < MAX_MESSAGE_CHARS + 200
    assert "\n" not in judged.message
    assert "sk-very-secret" not in judged.message


@pytest.mark.parametrize(
    ("header", "milliseconds"),
    [
        (None, None),
        ("2", 2000),
        ("0.5", 500),
        ("-3", 0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30_000),
        ("Thu, 01 Jan 2026 00:00:30", 30_000),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(header: str | None, milliseconds: int | None) -> None:
    """Both of HTTP's forms become milliseconds; anything else is as good as none."""
    assert judge(VendorRefusal(429, retry_after=header)).retry_after_ms == milliseconds


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ('{"error": {"type": "t", "message": "m"}}', "t", "m"),
        ('{"error": {"code": "1113", "message": "m"}}', "1113", "m"),
        ('{"error": {"code": 1113, "message": "m"}}', "1113", "m"),
        ('{"error": {"code": null, "type": "t"}}', "t", '{"error": {"code": null, "type": "t"}}'),
        ('{"code": "1", "message": "m"}', "1", "m"),
        ('{"error": "m"}', "", "m"),
        ("<html>bad gateway</html>", "", "<html>bad gateway</html>"),
        ("[1]", "", "[1]"),
        ("", "", ""),
    ],
)
def test_a_refusal_is_read_from_any_body(body: str, code: str, message: str) -> None:
    """The vendors' JSON gives code and message; any other body is its own message."""
    assert read_refusal(400, body, {}) == VendorRefusal(400, code, message)


@given(
    st.dictionaries(
        st.sampled_from(["code", "type", "message", "error"]),
        st.none() | st.integers() | st.text(max_size=5) | st.just([]),
    )
)
def test_any_error_object_is_read(error: dict[str, Any]) -> None:
    """No JSON that a vendor sends as an error makes the reading fail."""
    assert isinstance(read_error(error), tuple)
    assert isinstance(read_refusal(500, json.dumps({"error": error}), {}).message, str)


@pytest.mark.parametrize(
    "said",
    [
        "bad key sk-very-secret here",
        "bad key sk-abcdefgh12345 here",
        "Authorization: Bearer abc.def here",
        "0123456789abcdef0123456789abcdef.AbCdEfGh12345 is wrong",
    ],
)
def test_keys_are_taken_out(said: str) -> None:
    """The daemon's own key and anything of a key's shape do not reach the caller."""
    cleaned = clean(said, "sk-very-secret")
    assert "…" in cleaned
    assert not {"sk-very-secret", "sk-abcdefgh12345", "abc.def", "AbCdEfGh12345"} & set(cleaned.split())


def test_long_messages_are_cut() -> None:
    """A vendor's page of HTML becomes at most 500 characters."""
    assert len(clean("x" * 5000, "")) == MAX_MESSAGE_CHARS


class ConnectTimeout(Exception):  # noqa: N818 - named as HTTP clients name theirs
    """Of some HTTP client."""


def test_a_connection_that_was_never_made_executed_nothing() -> None:
    """The cause decides, however deep it lies, and whichever HTTP client's it is."""
    outer = RuntimeError("sdk")
    outer.__cause__ = ConnectTimeout()
    assert never_connected(outer)
    assert unreachable(KIMI, outer).executed == "no"
    assert unreachable(KIMI, ConnectionResetError()).executed == "maybe"


def test_a_time_out_says_how_long_the_vendor_was_silent() -> None:
    """For people the whole time, for the breaker the silence."""
    error = timed_out(GLM, 30.0, silent_s=1.25)
    assert error.message == "GLM (Zhipu) did not finish its answer within 30 s."
    assert error.details == {"silent_s": 1.2}


def test_what_is_not_understood_may_have_cost_money() -> None:
    """An answer in no known shape may have been executed."""
    assert not_understood(KIMI, "it is not JSON").executed == "maybe"
