"""The kinds of value that a setting may have, each refused with words that say what is allowed."""

import os
import re
import ssl
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, StringConstraints
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

from ..protocol.errors import InvalidArgumentsError
from ..providers import Catalogue

MIN_TOKEN_CHARS: Final = 16
"""A shorter token could be guessed; the one that the daemon makes has 43."""
USABLE_TOKEN: Final = re.compile(rf"[\x21-\x7e]{{{MIN_TOKEN_CHARS},}}")
MAX_PROGRESS_INTERVAL_S: Final = 8.0
"""Plain clients give up on a running call that sends nothing for longer (docs/protocol.md)."""
MIN_FRAME_BYTES: Final = 4096
"""A hello with a long token and a client's name must fit."""


def tls_context(cert: Path, key: Path) -> ssl.SSLContext:
    """A server's TLS context of a certificate chain and its key, both PEM.

    Raises:
        OSError: a file cannot be read, is not PEM, or the two do not belong together (``ssl.SSLError`` included).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # With an empty passphrase a locked key is an error; without one OpenSSL would ask on the terminal and hang.
    context.load_cert_chain(cert, key, password="")
    return context


def _not_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("number", "must be a number, not true or false")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _split_at(separator: str) -> BeforeValidator:
    """One string with separators, as environment variables have it, or a list, as TOML has it."""

    def split(value: object) -> object:
        if not isinstance(value, str):
            return value
        return [part for piece in value.split(separator) if (part := piece.strip())]

    return BeforeValidator(split)


def _host(host: str) -> str:
    if not re.fullmatch(r"[^\s/]+", host):
        raise PydanticCustomError("host", "must be an address or a name, such as 127.0.0.1")
    return host


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or re.search(r"\s", url):
        raise PydanticCustomError("http_url", "must be a URL that starts with http:// or https://")
    return url


def _origin(origin: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s*]+", origin):
        raise PydanticCustomError(
            "origin", "must be origins such as https://example.org:8443, without a path and without *"
        )
    return origin


def _token(token: SecretStr) -> SecretStr:
    if not USABLE_TOKEN.fullmatch(token.get_secret_value()):
        raise PydanticCustomError("token", f"must have {MIN_TOKEN_CHARS} printable ASCII characters or more, no spaces")
    return token


def _api_key(key: SecretStr) -> SecretStr:
    # It travels in a header: a line end, easily copied along with it, would break that.
    stripped = key.get_secret_value().strip()
    if not re.fullmatch(r"[\x21-\x7e]+", stripped):
        raise PydanticCustomError("api_key", "must be a key as the vendor shows it: printable ASCII without spaces")
    return SecretStr(stripped)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise PydanticCustomError("folder", "must be existing folders; {path} is none", {"path": str(path)})
    return path.resolve()


def _pattern(pattern: str) -> str:
    if re.search(r"^/|(^|/)\.\.(/|$)|\s|^[*/?]*$", pattern):
        raise PydanticCustomError(
            "pattern",
            "must be names below the workspace, such as .env.test or certs/*.pem, without spaces, and not all files",
        )
    return pattern


def _model(name: str) -> str:
    try:
        return Catalogue.load().resolve(name).id
    except InvalidArgumentsError as error:
        raise PydanticCustomError("model", "{message}", {"message": error.message.removesuffix(".")}) from None


CaseInsensitive = BeforeValidator(_lower)
"""For choices: ``JSON`` is ``json``."""

Port = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=65535)]
Count = Annotated[int, BeforeValidator(_not_bool), Field(ge=1)]
FrameBytes = Annotated[int, BeforeValidator(_not_bool), Field(ge=MIN_FRAME_BYTES)]
Seconds = Annotated[float, BeforeValidator(_not_bool), Field(gt=0, allow_inf_nan=False)]
ProgressInterval = Annotated[Seconds, Field(le=MAX_PROGRESS_INTERVAL_S)]
Host = Annotated[str, AfterValidator(_host)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_model)]
"""By id or alias; what is kept is the id."""
Token = Annotated[SecretStr, AfterValidator(_token)]
ApiKey = Annotated[SecretStr, AfterValidator(_api_key)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], NoDecode, _split_at(",")]
FilePatterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], NoDecode, _split_at(",")]
Folder = Annotated[Path, AfterValidator(_folder)]
Folders = Annotated[tuple[Folder, ...], NoDecode, _split_at(os.pathsep), Field(min_length=1)]
