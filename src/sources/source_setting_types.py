"""Types of source settings: URLs, hosts, variables and files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SkipValidation, StringConstraints
from pydantic_core import PydanticCustomError

from ..tools import TOOL_NAME, SecretLocation
from .operation_filter import MAX_GLOBS

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://", re.IGNORECASE)


def is_url(spec: str) -> bool:
    """Whether the location of a document is a URL, not a file."""
    return _URL.match(spec) is not None


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or re.search(r"\s", url):
        raise PydanticCustomError("http_url", "must be a URL that starts with http:// or https://")
    if parts.username is not None:
        raise PydanticCustomError("http_url", "must not contain a password; use auth")
    return url


def _spec(spec: str) -> str:
    return _http_url(spec) if is_url(spec) else spec


def _hosts(value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, list | tuple) and all(isinstance(host, str) and host for host in value):
        return tuple(host.lower() for host in value)
    raise PydanticCustomError("hosts", "must be true, false or a list of hosts")


def header_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~\[\]-]{1,100}", name):
        raise PydanticCustomError("auth_name", "must be the name of a header or a parameter, without spaces")
    return name


def _environment(value: object) -> dict[str, str | SecretLocation]:
    if not isinstance(value, Mapping):
        raise PydanticCustomError("environment", "must be a table of variables")
    variables: dict[str, str | SecretLocation] = {}
    for name, item in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise PydanticCustomError(
                "environment", "must have names of letters, digits and _, not starting with a digit"
            )
        match item:
            case str() if "\0" not in item:
                variables[name] = item
            case SecretLocation():
                variables[name] = item
            case {"env": str(variable), **rest} if not rest and _VARIABLE.fullmatch(variable):
                variables[name] = SecretLocation(variable, None)
            case {"file": str() | Path() as file, **rest} if not rest and str(file):
                variables[name] = SecretLocation(None, Path(file))
            case _:
                what = "{name} must be text, { env = ... } or { file = ... }"
                raise PydanticCustomError("environment", what, {"name": name})
    return variables


_OF_CONTAINER_PROGRAMS: Final = re.compile(
    r"(?:BUILDAH|CONTAINERS?|DOCKER|DYLD|LD|PODMAN|REGISTRY|SSL_CERT|STORAGE|XDG)_.*"
    r"|DBUS_SESSION_BUS_ADDRESS|GODEBUG|HOME|PATH|TMPDIR"
)


def belongs_to_container_program(variable: str) -> bool:
    """Whether docker or podman read this variable themselves. It would decide which program they run, with which
    rights.
    """
    return _OF_CONTAINER_PROGRAMS.fullmatch(variable) is not None


Environment = Annotated[Mapping[str, SkipValidation[str | SecretLocation]], BeforeValidator(_environment)]
"""Environment variables by name: a text, or the location of a secret."""
HttpUrl = Annotated[str, AfterValidator(_http_url)]
DocumentLocation = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_spec)]
"""The path of a file, or an ``http`` or ``https`` URL."""
Hosts = Annotated[bool | tuple[str, ...], BeforeValidator(_hosts)]

Globs = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...], Field(max_length=MAX_GLOBS)
]


def _renames(renames: Mapping[str, str]) -> Mapping[str, str]:
    names = list(renames.values())
    if not all(TOOL_NAME.fullmatch(name) for name in names) or len(set(names)) < len(names):
        raise PydanticCustomError(
            "renames", "must give each tool another name, of up to 64 letters, digits, underscores and hyphens"
        )
    return renames


Renames = Annotated[Mapping[str, str], Field(max_length=MAX_GLOBS), AfterValidator(_renames)]
