"""Who is let in: the daemon's own token, named tokens, and those of an OAuth issuer.

Who calls it: the daemon, which hands the door to its transports; the commands that make named tokens. What it must
never know: frames, requests, what a call does.
"""

from .authentication import Authenticator, TokenIssuer
from .protected_resource import WELL_KNOWN, ProtectedResource
from .token_book import PREFIX, NamedToken, TokenBook, TokenError
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
    "read_tokens",
]
