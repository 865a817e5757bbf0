"""Recognizes secrets by their field name and by their format."""

import functools
import re
from typing import Final

REDACTED: Final = "[redacted]"

_NAMES = re.compile(
    r"""
    password | passwd | passphrase | passcode | secret | credential | authorization | api_?key
    | (token | cookie | (private | access | role | resume | ssh | signing | encryption | master) _?key)
      (_ (pem | der | jwk | b64 | base64 | hex | raw | value | string))? $        # at the end: not input_tokens
    | (^ | _) (pwd | auth | otp | totp | jwt) (_ (code | header | key | value))? $  # whole words: not author
    """,
    re.VERBOSE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_LOOKS = re.compile(
    r"""
      \b sk- [A-Za-z0-9_-]{12,}                                             # Kimi, OpenAI and similar
    | \b [0-9a-f]{32} \. [A-Za-z0-9]{8,}                                    # GLM
    | \b eyJ [A-Za-z0-9_-]{8,} (?: \. [A-Za-z0-9_-]+ ){1,2}                 # JSON Web Tokens, such as Supabase's
    | \b sb_secret_ [A-Za-z0-9_-]{8,}
    | \b toold_ [A-Za-z0-9_-]{43}                                           # named tokens of toold
    | (?-i:                                                                 # tokens and resume keys of toold
        (?<! [A-Za-z0-9_-] ) (?= [A-Za-z0-9_-]{43} (?! [A-Za-z0-9_-] ) )
        (?= [^0-9]{0,42} [0-9] ) (?= [^A-Z]{0,42} [A-Z] ) (?= [^a-z]{0,42} [a-z] )  # not words joined by hyphens
        [A-Za-z0-9_-]{43}
      )
    | \b ya29\. [A-Za-z0-9_-]{12,}                                          # Google
    | \b do[opr]_v1_ [A-Za-z0-9]{12,}                                       # DigitalOcean
    | \b (?: gh[a-z]_ | github_pat_ | glpat- | xox[a-z]- | [sr]k_(?:live|test)_ | pypi- ) [A-Za-z0-9_-]{12,}
    | \b (?: hf_ | npm_ | sbp_ | gsk_ | xai- | AIza ) [A-Za-z0-9_-]{30,}
    | \b A[KS]IA [A-Z0-9]{16} \b
    | (?<= \b bearer\ ) \S{8,}
    | (?<= \b authorization:\ basic\ ) \S{4,}
    | (?<= :// ) [^\s/:@]{0,128} : [^\s/@]{1,128} (?= @ )                   # in a URL
    | -----BEGIN\ [A-Z ]* PRIVATE\ KEY-----  .*?  (?: -----END\ [A-Z ]* PRIVATE\ KEY----- | \Z )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_NAME = r"""
        (?: password | passwd | passphrase | passcode | secret | credential | api[_-]?key ) [\w-]{0,32}
      | (?: token | cookie
          | (?: private | access | account | role | resume | ssh | signing | encryption | master ) [_-]?key
        ) (?: [_-] (?: pem | der | jwk | b64 | base64 | hex | raw | value | string ) )?  # at the end, as above
      | (?<! [A-Za-z] ) (?: pwd (?! =[/~] ) | auth | otp | totp | jwt ) (?: [_-] (?: code | header | key | value ) )?
"""
_PLAIN = r"(?! \[redacted\] | (?: true | false | null | none | missing | required ) \b )"

_NAMED = re.compile(
    rf"""
    (?P<name> {_NAME} )
    (?: (?P<assigns> \\?["']? [ ]{{0,3}} [:=] [ ]{{0,3}} (?P<quote> \\?["'] ) )  # "name": "value", name = 'value'
        (?! \[redacted\] )
        (?: (?! (?P=quote) ) (?: \\. | [^\n] ) )+
      | (?P<equals> = )  # NAME=value, ?name=value&
        {_PLAIN}
        [^\s"'&;,)\]}}=\\] [^\s"'&;,)\]}}\\]*
      | (?P<colon> : [ ]{{1,3}} )  # name: value, if it is long and has letters and digits, unlike words
        (?= [^\s"'&;,)\]}}\\]{{0,64}} [0-9] ) (?= [^\s"'&;,)\]}}\\]{{0,64}} [a-z] )
        [^\s"'&;,)\]}}\\\[] [^\s"'&;,)\]}}\\]{{11,}}
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A value assigned to the name of a secret within text, as in pasted settings."""

_LINE = re.compile(
    rf"""
    ^ (?P<name> [ \t]* (?: - [ \t]+ )? [\w.-]{{0,64}}? (?: {_NAME} ) [ ]{{0,3}} : [ \t]{{1,8}} )
    {_PLAIN}
    [\w+/=.~@$%^-] [^\s\\]* (?= [ \t\r]* (?: \#[^\n]* )? $ )
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""A value on a separate line, as in YAML: ``name: value``. A value of several words is prose and is not redacted."""


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a field with this name contains a secret: ``token``, ``apiKey``, ``X-Authorization``; not ``tokens``."""
    return _NAMES.search(_CAMEL.sub("_", name[:256]).replace("-", "_").lower()) is not None


def redact_text(text: str) -> str:
    """Returns the text with secrets replaced: values in a secret's format, or assigned to a secret's name."""
    redacted = _LOOKS.sub(REDACTED, text)
    spaced = ": " in redacted or ":\t" in redacted  # the colons of times and addresses have no space after them
    if spaced or "=" in redacted or '"' in redacted or "'" in redacted:
        redacted = _NAMED.sub(rf"\g<name>\g<assigns>\g<equals>\g<colon>{REDACTED}", redacted)
    if spaced:
        redacted = _LINE.sub(rf"\g<name>{REDACTED}", redacted)
    return redacted
