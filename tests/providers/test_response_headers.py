"""The headers of a vendor's response that are shown to callers."""

from hypothesis import given
from hypothesis import strategies as st
from toold.providers.response_headers import shown_headers


def test_headers_about_the_request_are_shown() -> None:
    """The request id, cache savings and limits are shown under lower-case names. All other headers are omitted."""
    assert shown_headers(
        {
            "Msh-Request-Id": "r-1",
            "Msh-Context-Cache-Token-Saved": "4700",
            "X-RateLimit-Remaining-Tokens": "12",
            "Content-Type": "application/json",
            "Set-Cookie": "session=1",
            "Server": "nginx",
        },
        "sk-key",
    ) == {
        "content-type": "application/json",
        "msh-context-cache-token-saved": "4700",
        "msh-request-id": "r-1",
        "x-ratelimit-remaining-tokens": "12",
    }


def test_account_values_are_hidden() -> None:
    """The values of account headers are masked, and a key is removed from any value."""
    headers = {"Msh-Uid": "u-1", "Msh-Org-Id": "o-1", "Msh-Project-Id": "p-1", "Msh-Trace-Mode": "on sk-key"}
    assert shown_headers(headers, "sk-key") == {
        "msh-org-id": "…",
        "msh-project-id": "…",
        "msh-trace-mode": "on …",
        "msh-uid": "…",
    }


@given(st.dictionaries(st.sampled_from(["msh-a", "date", "msh-token", "x-request-id"]), st.text(max_size=50)))
def test_the_key_is_never_shown(headers: dict[str, str]) -> None:
    """The key is removed from any header value."""
    shown = shown_headers({name: f"{value}secret-key{value}" for name, value in headers.items()}, "secret-key")
    assert "secret-key" not in str(shown)
