"""The mapping of vendor failures to errors, which all vendor transports share."""

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
from toold.providers.error_bodies import read_error
from toold.providers.vendor_errors import (
    MAX_MESSAGE_CHARS,
    VendorObjectNotFoundError,
    VendorRefusal,
    clean,
    never_connected,
    not_understood,
    read_refusal,
    refused,
    timed_out,
    unreachable,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def judge(refusal: VendorRefusal, vendor: VendorInfo = KIMI) -> CallError:
    return refused(vendor, refusal, secret="sk-very-secret")


@pytest.mark.parametrize(
    ("vendor", "status", "code", "message", "error", "executed", "transient"),
    [
        (KIMI, 401, "invalid_authentication_error", "Invalid Authentication", ProviderError, "no", False),
        (KIMI, 403, "permission_denied_error", "not open", ProviderError, "no", False),
        (KIMI, 404, "resource_not_found_error", "Not found the model", VendorObjectNotFoundError, "no", False),
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
        (KIMI, 501, "not_supported_error", "no embeddings", ProviderError, "no", False),
        (KIMI, 408, "", "", ServiceUnavailableError, "maybe", True),
        (GLM, 401, "1002", "Token非法", ProviderError, "no", False),
        (GLM, 400, "1004", "expired", ProviderError, "no", False),
        (GLM, 429, "1113", "余额不足", RateLimitedError, "no", False),
        (GLM, 429, "1302", "并发", RateLimitedError, "no", True),
        (GLM, 400, "1261", "Prompt 超长", ContextLengthExceededError, "no", False),
        (GLM, 400, "1301", "敏感", ProviderError, "no", False),
        (GLM, 400, "1211", "模型不存在", ProviderError, "no", False),
        (GLM, 502, "", "<html>", ServiceUnavailableError, "maybe", True),
    ],
)
def test_each_code_has_its_error(
    vendor: VendorInfo, status: int, code: str, message: str, error: type[CallError], executed: str, transient: bool
) -> None:
    """Status and code decide the error, whether the request was executed, and whether the error is transient."""
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
def test_any_refusal_becomes_a_bounded_error(
    vendor: VendorInfo, status: int, code: str, message: str, retry_after: str | None
) -> None:
    """Any vendor response becomes one error with a bounded, one-line message that does not contain the key."""
    body = json.dumps({"error": {"code": code, "message": message + "sk-very-secret"}})
    judged = judge(read_refusal(status, body, {"retry-after": retry_after or ""}, NOW), vendor)
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
    """Both HTTP forms become milliseconds. Any other value is ignored."""
    headers = {} if header is None else {"retry-after": header}
    assert judge(read_refusal(429, "", headers, NOW)).retry_after_ms == milliseconds


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
def test_refusal_is_read_from_any_body(body: str, code: str, message: str) -> None:
    """The vendors' JSON gives code and message. Any other body becomes the message."""
    assert read_refusal(400, body, {}, NOW) == VendorRefusal(400, code, message)


@given(
    st.dictionaries(
        st.sampled_from(["code", "type", "message", "error"]),
        st.none() | st.integers() | st.text(max_size=5) | st.just([]),
    )
)
def test_any_error_object_can_be_read(error: dict[str, Any]) -> None:
    """Reading never fails, regardless of the JSON that a vendor sends as an error."""
    assert isinstance(read_error(error), tuple)
    assert isinstance(read_refusal(500, json.dumps({"error": error}), {}, NOW).message, str)


@pytest.mark.parametrize(
    "message",
    [
        "bad key sk-very-secret here",
        "bad key sk-abcdefgh12345 here",
        "Authorization: Bearer abc.def here",
        "0123456789abcdef0123456789abcdef.AbCdEfGh12345 is wrong",
    ],
)
def test_keys_are_removed_from_messages(message: str) -> None:
    """The daemon's own key, and any text that looks like a key, does not reach the caller."""
    cleaned = clean(message, "sk-very-secret")
    assert "…" in cleaned
    assert not {"sk-very-secret", "sk-abcdefgh12345", "abc.def", "AbCdEfGh12345"} & set(cleaned.split())


def test_long_messages_are_truncated() -> None:
    """A message is truncated to ``MAX_MESSAGE_CHARS``."""
    assert len(clean("x" * 5000, "")) == MAX_MESSAGE_CHARS


class ConnectTimeout(Exception):  # noqa: N818 - named as HTTP clients name theirs
    """The exception of an arbitrary HTTP client."""


def test_failed_connect_executed_nothing() -> None:
    """The underlying cause decides, at any depth and for any HTTP client."""
    outer = RuntimeError("sdk")
    outer.__cause__ = ConnectTimeout()
    assert never_connected(outer)
    assert unreachable(KIMI, outer).executed == "no"
    assert unreachable(KIMI, ConnectionResetError()).executed == "maybe"


def test_timeout_reports_how_long_the_vendor_was_silent() -> None:
    """The message has the total time for people, and the details have the silence for the circuit breaker."""
    error = timed_out(GLM, 30.0, silent_s=1.25)
    assert error.message == "GLM (Zhipu) did not finish its answer within 30 s."
    assert error.details == {"silent_s": 1.2}


def test_unreadable_answer_may_have_been_executed() -> None:
    """An answer in an unknown format has executed ``maybe``."""
    assert not_understood(KIMI, "it is not JSON").executed == "maybe"
