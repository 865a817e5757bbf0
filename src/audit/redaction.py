"""Telling secrets from the rest, by the name that they stand under and by what they look like."""

import functools
import re
from typing import Final

REDACTED: Final = "[redacted]"

_NAMES = re.compile(
    r"""
    password | passwd | passphrase | secret | credential | authorization | api_?key
    | (token | cookie | private_?key | access_?key | role_?key | resume_?key) $   # at the end: not input_tokens
    """,
    re.VERBOSE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_LOOKS = re.compile(
    r"""
      \b sk- [A-Za-z0-9_-]{12,}                                             # Kimi, OpenAI and their like
    | \b [0-9a-f]{32} \. [A-Za-z0-9]{8,}                                    # GLM
    | \b eyJ [A-Za-z0-9_-]{8,} (?: \. [A-Za-z0-9_-]+ ){1,2}                 # JSON Web Tokens, such as Supabase's
    | \b sb_secret_ [A-Za-z0-9_-]{8,}
    | \b toold_ [A-Za-z0-9_-]{43}                                           # our own, with names
    | \b (?: gh[a-z]_ | github_pat_ | glpat- | xox[a-z]- | [sr]k_(?:live|test)_ | pypi- ) [A-Za-z0-9_-]{12,}
    | \b (?: hf_ | npm_ | sbp_ | AIza ) [A-Za-z0-9_-]{30,}
    | \b A[KS]IA [A-Z0-9]{16} \b
    | (?<= \b bearer\ ) \S{8,}
    | (?<= \b authorization:\ basic\ ) \S{4,}
    | (?<= :// ) [^\s/:@]{0,128} : [^\s/@]{1,128} (?= @ )                   # in an address
    | -----BEGIN\ [A-Z ]* PRIVATE\ KEY-----  .*?  (?: -----END\ [A-Z ]* PRIVATE\ KEY----- | \Z )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_NAMED = re.compile(
    r"""
    (?P<name>
        (?: password | passwd | passphrase | secret | credential | api[_-]?key ) [\w-]{0,32}
      | (?: token | cookie | (?: private | access | account | role | resume )[_-]?key )  # at the end, as above
    )
    (?: (?P<assigns> \\?["']? [ ]{0,3} [:=] [ ]{0,3} (?P<quote> \\?["'] ) )  # "name": "value", name = 'value'
        (?! \[redacted\] )
        (?: (?! (?P=quote) ) (?: \\. | [^\n] ) )+
      | (?P<equals> = )  # NAME=value, ?name=value&
        (?! \[redacted\] )
        [^\s"'&;,)\]}=\\] [^\s"'&;,)\]}\\]*
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What is assigned to a secret's name within text, as in pasted settings."""


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret: ``token``, ``apiKey``, ``X-Authorization``; not ``tokens``."""
    return _NAMES.search(_CAMEL.sub("_", name[:256]).replace("-", "_").lower()) is not None


def redact_text(text: str) -> str:
    """The text, with whatever looks like a secret, or is assigned to a secret's name, taken out."""
    redacted = _LOOKS.sub(REDACTED, text)
    if "=" in redacted or '"' in redacted or "'" in redacted:  # seldom so in a log's lines, of which each call has one
        redacted = _NAMED.sub(rf"\g<name>\g<assigns>\g<equals>{REDACTED}", redacted)
    return redacted
