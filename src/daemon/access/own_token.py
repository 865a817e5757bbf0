"""Whether a token is the daemon's own."""

import hmac
from collections.abc import Callable

from pydantic import SecretStr

from ...protocol.tool_call import LOCAL, Principal

OwnToken = Callable[[str | None], Principal | None]
"""The daemon's own token → its principal; of any other, named tokens included, nobody."""


def token_check(token: SecretStr | None) -> OwnToken:
    """A check of a token against the daemon's, in constant time. None: auth is off, and everybody is local."""
    if token is None:
        return lambda _: LOCAL
    expected = token.get_secret_value().encode()

    def check(given: str | None) -> Principal | None:
        # Surrogates cannot be in a token, but can be in what is sent.
        known = given is not None and hmac.compare_digest(given.encode(errors="surrogatepass"), expected)
        return LOCAL if known else None

    return check
