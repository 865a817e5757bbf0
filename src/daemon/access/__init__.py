"""Authentication: the daemon's token, named tokens, and tokens of an OAuth issuer.

The daemon passes an ``Authenticator`` to its transports; commands create named tokens. This package does not know
frames, requests or calls.
"""

from .authentication import Authenticator, TokenIssuer
from .protected_resource import WELL_KNOWN, ProtectedResource
from .token_book import PREFIX, NamedToken, TokenBook, TokenError, hash_of
from .token_file import TOKENS_FILE, TokenFile, change_tokens, read_tokens

__all__ = [
    "PREFIX",
    "TOKENS_FILE",
    "WELL_KNOWN",
    "Authenticator",
    "NamedToken",
    "ProtectedResource",
    "TokenBook",
    "TokenError",
    "TokenFile",
    "TokenIssuer",
    "change_tokens",
    "hash_of",
    "read_tokens",
]
