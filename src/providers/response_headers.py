"""Which headers of a vendor's answer are shown. Pure.

Moonshot says with them which request it was (``msh-request-id``) and how many tokens its cache saved
(``msh-context-cache-token-saved``); its older, explicit cache also named itself and its end (``msh-context-cache-id``,
``msh-context-cache-token-exp``; platform.moonshot.ai/docs/api/caching). Either vendor may add limits
(``x-ratelimit-…``).
"""

from collections.abc import Mapping
from typing import Final

from .vendor_errors import clean

_SHOWN: Final = ("msh-", "x-msh-", "x-ratelimit-", "x-request-id", "x-log-id", "retry-after", "content-type", "date")
_ACCOUNT: Final = ("uid", "gid", "org", "user", "project", "account", "key", "token", "auth", "session", "cookie")
"""Parts of a name that say that the value names the account, or opens it."""
_REDACTED: Final = "…"
_TOKEN_COUNTS: Final = frozenset({"msh-context-cache-token-saved", "msh-context-cache-token-exp"})
"""Tokens of text, not of access."""


def shown_headers(headers: Mapping[str, str], secret: str) -> dict[str, str]:
    """The headers worth showing, names in lower case; what names the account is ``…``, and keys are taken out."""
    return {
        name: _REDACTED if _names_account(name) else clean(value, secret)
        for name, value in sorted((name.lower(), value) for name, value in headers.items())
        if name.startswith(_SHOWN)
    }


def _names_account(name: str) -> bool:
    if name in _TOKEN_COUNTS or name.startswith("x-ratelimit-"):
        return False
    return any(part in _ACCOUNT for part in name.split("-"))
