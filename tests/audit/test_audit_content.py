"""The stored arguments under each policy."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.audit import REDACTED, content_reducer, redact
from toold.audit.audit_content import MAX_CONTENT_BYTES, MAX_MESSAGE_BYTES, redact_message

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=50,
)


def kept(policy: Any, arguments: Any) -> Any:
    text = content_reducer(policy)(arguments)
    return text if text is None else json.loads(text)


def test_shape_policy_stores_no_values() -> None:
    """The policy ``shape`` stores the shape of the arguments."""
    assert kept("shape", {"text": "hello"}) == {"text": "str[5]"}


def test_none_policy_stores_nothing() -> None:
    """The policy ``none`` stores neither values nor names."""
    assert kept("none", {"text": "hello"}) is None


def test_full_policy_stores_the_content() -> None:
    """The policy ``full`` stores short arguments without secrets unchanged."""
    arguments = {"text": "hello", "n": [1, 2.5, None, True], "o": {"a": {}}, "max_tokens": 5}
    assert kept("full", arguments) == arguments


@pytest.mark.parametrize("secret", ["hunter2", 12345, ["a"], {"x": 1}])
def test_full_policy_redacts_by_name(secret: Any) -> None:
    """The value under a secret's name is replaced at any depth, whatever its type."""
    assert kept("full", {"a": [{"apiKey": secret}]}) == {"a": [{"apiKey": REDACTED}]}


def test_full_policy_redacts_by_format() -> None:
    """Secrets within text and within names are replaced."""
    reported = json.dumps(kept("full", {"t": "use sk-abcdef0123456789", "sk-abcdef0123456789": 1}))
    assert "abcdef" not in reported
    assert reported.count(REDACTED) == 2


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(anything)
def test_full_policy_is_limited(arguments: Any) -> None:
    """The policy ``full`` stores at most 16 KiB of JSON."""
    text = content_reducer("full")({"x": arguments})
    assert text is not None
    assert len(text.encode()) <= MAX_CONTENT_BYTES


@pytest.mark.parametrize(
    "large",
    [
        "x" * 10**6,
        "\0" * 10**6,
        ["abc"] * 10**5,
        [[]] * 10**5,
        {f"name{n}": n for n in range(10**5)},
        {"a" * 10**6: 1},
        [10**300] * 10**4,
    ],
)
def test_full_policy_cuts_large_values(large: Any) -> None:
    """Long texts, lists, objects, names and numbers are cut to the limit."""
    text = content_reducer("full")({"x": large})
    assert text is not None
    assert len(text.encode()) <= MAX_CONTENT_BYTES


def test_cut_states_the_original_length() -> None:
    """Text that was cut states its original length."""
    assert kept("full", {"x": "y" * 10**5})["x"].endswith("y… [100000 characters]")


def test_secret_across_the_cut_is_redacted() -> None:
    """A secret that crosses the cut is replaced completely."""
    secret = "sk-" + "s3cr3t" * 20
    for offset in range(0, 200, 7):
        start = MAX_CONTENT_BYTES // 2 - offset
        assert "s3cr3t" not in redact("." * start + secret + "." * 10**4)


def test_deep_arguments_are_cut() -> None:
    """Nesting is limited in depth."""
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert content_reducer("full")(deep)


@pytest.mark.parametrize("character", ["a", "\u4e2d", "\x01", '"', "\U0001f600"])
def test_message_is_cut_to_its_size_limit(character: str) -> None:
    """A message is cut to the size limit of its JSON, uses at least half of it, and states its original length."""
    text = character * 100_000
    stored = redact_message({"tool": "chat", "text": text, "files": ["x"] * 10_000})
    size = len(msgspec.json.encode(stored))
    assert MAX_MESSAGE_BYTES // 2 < size <= MAX_MESSAGE_BYTES
    assert isinstance(stored, dict)
    assert str(stored["text"]).endswith("… [100000 characters]")


def test_short_message_is_unchanged() -> None:
    """A short message is unchanged, including its names."""
    message = {"tool": "chat", "text": "Hello " * 1000, "files": ["x.py"]}
    assert redact_message(message) == message


@given(anything)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_size_of_any_message_is_limited(message: Any) -> None:
    """A message of any content is within the size limit."""
    assert len(msgspec.json.encode(redact_message(message))) <= MAX_MESSAGE_BYTES
