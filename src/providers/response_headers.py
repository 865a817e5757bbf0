"""Selects and redacts the headers of a vendor's response. Pure.

Moonshot's headers identify the request (``msh-request-id``) and report the tokens saved by its cache
(``msh-context-cache-token-saved``); its older, explicit cache also reported its id and expiry
(``msh-context-cache-id``, ``msh-context-cache-token-exp``; platform.moonshot.ai/docs/api/caching). Both vendors may
add rate limits (``x-ratelimit-…``).
"""

from collections.abc import Mapping
from typing import Final

from .vendor_errors import clean

_SHOWN: Final = ("msh-", "x-msh-", "x-ratelimit-", "x-request-id", "x-log-id", "retry-after", "content-type", "date")
_ACCOUNT: Final = ("uid", "gid", "org", "user", "project", "account", "key", "token", "auth", "session", "cookie")
"""Parts of the names of headers whose values identify the account or grant access to it."""
_REDACTED: Final = "…"
_TOKEN_COUNTS: Final = frozenset({"msh-context-cache-token-saved", "msh-context-cache-token-exp"})
"""Names of headers with counts of text tokens, not access tokens."""


def shown_headers(headers: Mapping[str, str], secret: str) -> dict[str, str]:
    """Returns the useful headers, names in lower case. Account identifiers become ``…``, and keys are removed."""
    return {
        name: _REDACTED if _names_account(name) else clean(value, secret)
        for name, value in sorted((name.lower(), value) for name, value in headers.items())
        if name.startswith(_SHOWN)
    }


def _names_account(name: str) -> bool:
    if name in _TOKEN_COUNTS or name.startswith("x-ratelimit-"):
        return False
    return any(part in _ACCOUNT for part in name.split("-"))
