"""The kinds of value that a setting may have."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from toold.daemon.config.amounts import Amounts
from toold.daemon.config.setting_types import (
    ApiKey,
    FilePatterns,
    HttpUrl,
    Origins,
    Port,
    Token,
    tls_context,
)


@pytest.mark.parametrize("url", ["http://h", "https://h:8443/v1", "http://[::1]:9/", "https://user:pass@h/x?y=1"])
def test_urls(url: str) -> None:
    """Addresses over HTTP are not changed."""
    assert TypeAdapter(HttpUrl).validate_python(url) == url


@pytest.mark.parametrize(
    "url", ["h", "ftp://h", "http://", "http://h:0", "http://h:port", "http://h/a b", "//h", "http://[::1"]
)
def test_invalid_urls(url: str) -> None:
    """URLs that cannot be requested are refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(HttpUrl).validate_python(url)


@pytest.mark.parametrize("origin", ["https://a.example", "http://localhost:3000", "vscode-webview://abc", "null://x"])
def test_origins(origin: str) -> None:
    """Scheme, host and port make an origin, editors' own schemes included."""
    assert TypeAdapter(Origins).validate_python([origin]) == (origin,)


@pytest.mark.parametrize("origin", ["*", "https://*.example", "https://a.example/", "a.example", "https://a b"])
def test_invalid_origins(origin: str) -> None:
    """Patterns and paths are refused, since they would never match."""
    with pytest.raises(ValidationError):
        TypeAdapter(Origins).validate_python([origin])


@pytest.mark.parametrize("pattern", [".env.test", "certs/*.pem", "*.pem"])
def test_file_patterns(pattern: str) -> None:
    """Names, and directories before them, separated by commas in one string."""
    assert TypeAdapter(FilePatterns).validate_python(f"{pattern}, other.key") == (pattern, "other.key")


@pytest.mark.parametrize("pattern", ["*", "**/*", "?", "/etc/key.pem", "../key.pem", "a/../b", "a b"])
def test_invalid_file_patterns(pattern: str) -> None:
    """Patterns that match everything or lie outside the workspace are refused."""
    with pytest.raises(ValidationError, match="must be paths in the workspace"):
        TypeAdapter(FilePatterns).validate_python([pattern])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16))
def test_tokens_are_unchanged(token: str) -> None:
    """16 printable ASCII characters or more are a token, unchanged."""
    assert TypeAdapter(Token).validate_python(token).get_secret_value() == token


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=15) | st.text(min_size=16).filter(lambda text: not (text.isascii() and text.isprintable())))
def test_weak_tokens_are_refused(token: str) -> None:
    """A token that is too short, or cannot be sent in a header, is refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(Token).validate_python(token)


def test_keys_lose_the_line_end() -> None:
    """A key that was read from a file brings its line end; inside, no space is allowed."""
    assert TypeAdapter(ApiKey).validate_python(" sk-1\n").get_secret_value() == "sk-1"
    with pytest.raises(ValidationError):
        TypeAdapter(ApiKey).validate_python("sk 1")


@pytest.mark.parametrize("value", [True, -1, 65536, 1.5, "x", None])
def test_invalid_ports(value: object) -> None:
    """A port is a whole number from 0 to 65535, not a boolean."""
    with pytest.raises(ValidationError):
        TypeAdapter(Port).validate_python(value)


def test_files_that_are_not_certificates(tmp_path: Path) -> None:
    """A missing or non-PEM file raises OSError."""
    (tmp_path / "cert.pem").write_text("no certificate")
    for name in ("cert.pem", "missing.pem"):
        with pytest.raises(OSError):  # noqa: PT011 - of several kinds, ssl.SSLError among them
            tls_context(tmp_path / name, tmp_path / name)


@pytest.mark.parametrize(
    ("value", "amounts"),
    [
        ("5 USD", {"USD": 5.0}),
        ("5usd, 30.5 CNY", {"USD": 5.0, "CNY": 30.5}),
        (["0.25 USD", "1 CNY"], {"USD": 0.25, "CNY": 1.0}),
        ("0 USD", {"USD": 0.0}),
        ([], {}),
        ({"USD": 5}, {"USD": 5.0}),
    ],
)
def test_amounts_of_money(value: object, amounts: dict[str, float]) -> None:
    """A number and a currency, several as one text, as a list or as a table."""
    assert TypeAdapter(Amounts).validate_python(value) == amounts


@pytest.mark.parametrize(
    "value", ["", "5", "USD", "5 EUR", "-1 USD", "1e3 USD", "5 USD, 6 USD", 5, {"EUR": 5}, [5], "nan USD"]
)
def test_invalid_amounts(value: object) -> None:
    """Another currency, a number alone, the same currency twice: the error says the form."""
    with pytest.raises(ValidationError, match="must be amounts such as 5 USD, 30 CNY"):
        TypeAdapter(Amounts).validate_python(value)
