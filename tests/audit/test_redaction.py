"""Secrets are distinguished from other text."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.audit import REDACTED, is_secret_name, redact_text, redaction

OWN_TOKEN = "aB3-_xYz" * 5 + "Qr7"
"""43 characters, the length of a token that the daemon creates."""


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "access_token",
        "apiKey",
        "X-Api-Key",
        "API_KEY",
        "Authorization",
        "password",
        "db_password",
        "client_secret",
        "cookie",
        "Set-Cookie",
        "SUPABASE_SERVICE_ROLE_KEY",
        "resumeKey",
        "credentials",
        "passphrase",
        "private_key",
        "private_key_pem",
        "privateKeyPem",
        "sshKey",
        "pwd",
        "DB_PWD",
        "auth",
        "auth_header",
        "otp",
        "jwt",
    ],
)
def test_secret_names_are_recognized(name: str) -> None:
    """These names denote secrets in any notation."""
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("tokens", "input_tokens", "max_tokens", "token_count", "key", "prompt", "session_id", ""),
        *("author", "authority", "oauth_issuer", "auth_method", "stop", "laptop"),
    ],
)
def test_ordinary_names_are_not_secret(name: str) -> None:
    """Token counts, and words that only contain such a name, do not denote secrets."""
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("my key is sk-abcdef0123456789.", f"my key is {REDACTED}."),
        ("0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp", REDACTED),
        ("jwt eyJhbGciOiJI.eyJpc3MiOiJz.dQw4w9WgXcQ end", f"jwt {REDACTED} end"),
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {REDACTED}"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {REDACTED}"),
        ("pay by sk_live_0123456789abcdef", f"pay by {REDACTED}"),
        ("AIza" + "Sy-_4" * 7, REDACTED),
        ("gsk_" + "aB3" * 14, REDACTED),
        ("xai-" + "aB3" * 26, REDACTED),
        ("ya29." + "a0Af_H6-" * 3 + " as Google has it", f"{REDACTED} as Google has it"),
        ("dop_v1_" + "0a1b" * 16, REDACTED),
        (f"with {OWN_TOKEN}, then", f"with {REDACTED}, then"),
        (f"--token {OWN_TOKEN}", f"--token {REDACTED}"),
        ("hf_" + "abcDEF" * 6, REDACTED),
        ("ghp_0123456789abcdefABCD", REDACTED),
        ("send toold_" + "aB3-_" * 8 + "xyz, then", f"send {REDACTED}, then"),
        ("AKIAIOSFODNN7EXAMPLE", REDACTED),
        ("postgres://me:hunter22@db/x", f"postgres://{REDACTED}@db/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nafter", f"{REDACTED}\nafter"),
        ("-----BEGIN PRIVATE KEY-----\nMIIcutoff", REDACTED),
    ],
)
def test_secrets_are_redacted_by_format(text: str, shown: str) -> None:
    """Keys, tokens and passwords in addresses are replaced; the text around them stays."""
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("DB_PASSWORD=hunter2\nPORT=5432", f"DB_PASSWORD={REDACTED}\nPORT=5432"),
        ("export X_API_KEY='a b' # mine", f"export X_API_KEY='{REDACTED}' # mine"),
        ("https://h/?api_key=abc&page=2", f"https://h/?api_key={REDACTED}&page=2"),
        ("host=h password=hunter2 user=u", f"host=h password={REDACTED} user=u"),
        ('{"password": "hun\\"ter2", "port": 1}', f'{{"password": "{REDACTED}", "port": 1}}'),
        (r"{\"client_secret\":\"hunter2\"}", rf"{{\"client_secret\":\"{REDACTED}\"}}"),
        ('token = "abc"', f'token = "{REDACTED}"'),
        ("AccountKey=abc+/d==;Next=1", f"AccountKey={REDACTED};Next=1"),
        ("api_key=sk-abcdef0123456789", f"api_key={REDACTED}"),
        ("DB_PWD=hunter2 auth=abc", f"DB_PWD={REDACTED} auth={REDACTED}"),
        ("https://h/?otp=123456&page=2", f"https://h/?otp={REDACTED}&page=2"),
        ("kind: Secret\ndata:\n  token: x\n  port: 1", f"kind: Secret\ndata:\n  token: {REDACTED}\n  port: 1"),
        ("- db.password: hunter2  # mine\r\n- user: me", f"- db.password: {REDACTED}  # mine\r\n- user: me"),
        ("private_key_pem: MIIabc", f"private_key_pem: {REDACTED}"),
        ("use token: abc123def456 for it", f"use token: {REDACTED} for it"),
    ],
)
def test_assignments_to_secret_names_are_redacted(text: str, shown: str) -> None:
    """In settings, JSON, addresses and programs, only the value that is assigned to a secret name is replaced."""
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a risk-averse-investment-plan",
        "see https://example.org:8080/a@b",
        "bearer of news",
        "0" * 64,
        "0" * 43,
        "a-name-of-many-words-that-has-43-characters",
        OWN_TOKEN + "A",
        "eyJ",
        "token: missing. `toold token` prints it",
        "token: missing",
        "it cannot read the token: timeout",
        "PWD=/home/me TOOLD_AUTH=false",
        "password: |",
        "author: me",
        "max_tokens=5, input_tokens=7",
        "if password == other:",
        "a password of 'eight' letters",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Text that only begins like a secret is unchanged."""
    assert redact_text(text) == text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.sampled_from("-BEGIN PRVATKY:/@.eyJsk0123abcdef "), max_size=2000))
def test_redaction_is_idempotent(text: str) -> None:
    """A second pass over redacted text changes nothing, for any text."""
    once = redact_text(text)
    assert redact_text(once).replace(REDACTED, "") == once.replace(REDACTED, "")


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["password", "auth", "=", '"', "'", ": ", "\\", "x", "1a2b3c4d5e6f", REDACTED, "&", "\n", "sk-abcdefabcdef"]
        )
    )
)
def test_redaction_of_assignments_is_idempotent(pieces: list[str]) -> None:
    """The replacement itself is not redacted again."""
    once = redact_text("".join(pieces))
    assert redact_text(once) == once


def test_text_with_times_and_addresses_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text with times and addresses but no assignments is not searched for secret names."""
    for pattern in ("_NAMED", "_LINE"):
        monkeypatch.setattr(redaction, pattern, None)
    for text in ("2026-11-22T09:30:00.123456Z", "127.0.0.1:52341", "gate.py:212", "4f1c09a2b7d3-1f/fetch"):
        assert redact_text(text) == text
