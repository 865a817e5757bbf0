"""Which headers of a vendor's answer are shown."""

from hypothesis import given
from hypothesis import strategies as st
from toold.providers.response_headers import shown_headers


def test_what_says_something_of_the_request_is_shown() -> None:
    """The request's id, what the cache saved, limits; names in lower case, nothing else."""
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


def test_what_names_the_account_is_not_shown() -> None:
    """The header is there, its value is not; and a key is taken out wherever it stands."""
    headers = {"Msh-Uid": "u-1", "Msh-Org-Id": "o-1", "Msh-Project-Id": "p-1", "Msh-Trace-Mode": "on sk-key"}
    assert shown_headers(headers, "sk-key") == {
        "msh-org-id": "…",
        "msh-project-id": "…",
        "msh-trace-mode": "on …",
        "msh-uid": "…",
    }


@given(st.dictionaries(st.sampled_from(["msh-a", "date", "msh-token", "x-request-id"]), st.text(max_size=50)))
def test_the_key_is_never_shown(headers: dict[str, str]) -> None:
    """Whatever a vendor repeats."""
    shown = shown_headers({name: f"{value}secret-key{value}" for name, value in headers.items()}, "secret-key")
    assert "secret-key" not in str(shown)
