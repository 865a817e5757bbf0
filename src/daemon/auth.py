"""Who a hello is from."""

import hmac

from pydantic import SecretStr

from ..protocol.calls import LOCAL, Principal
from ..protocol.handshake import Authenticate


def token_check(token: SecretStr | None) -> Authenticate:
    """A check of hello's token against the daemon's, in constant time. None: auth is off, and everybody is local."""
    if token is None:
        return lambda _: LOCAL
    expected = token.get_secret_value().encode()

    def check(given: str | None) -> Principal | None:
        # Surrogates cannot be in a token, but can be in what is sent.
        known = given is not None and hmac.compare_digest(given.encode(errors="surrogatepass"), expected)
        return LOCAL if known else None

    return check
