"""Encodes arguments in the URL and headers of a request, in OpenAPI's styles. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from ...protocol.error_codes import InvalidArgumentsError
from .api_operation import ApiOperation, ApiParameter

_SEPARATORS: Final[Mapping[str, str]] = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
"""The separators in the URL, by style. Separators within a value are percent-encoded like other characters."""
_RESERVED: Final = ":/?@!$'()*,;="
"""The characters that a query with ``allowReserved`` keeps. Characters that would end or split the query are still
encoded, and so are brackets, which a query must not contain (RFC 3986, 3.4).
"""
_PERCENT_TRIPLE: Final = re.compile(r"(%[0-9A-Fa-f]{2})")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
Pairs = list[tuple[str, str]]


def encode_url(operation: ApiOperation, arguments: Mapping[str, Any]) -> str:
    """Returns the URL of a request.

    Raises:
        InvalidArgumentsError: a path value would lead to another operation.
    """
    path = operation.path
    for parameter in _present(operation, arguments, "path"):
        path = path.replace(f"{{{parameter.name}}}", _in_path(parameter, arguments[parameter.argument]))
        if has_dot_segment(path):
            wrong = "must not have a . or .. segment: the path would lead to another operation"
            raise InvalidArgumentsError(
                f"{parameter.argument} {wrong}.", details={"fields": {parameter.argument: wrong}}
            )
    query = "&".join(
        part
        for parameter in _present(operation, arguments, "query")
        for part in _query_parts(parameter, arguments[parameter.argument])
    )
    url = operation.server + path
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def encode_headers(operation: ApiOperation, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Returns the headers, including cookies.

    Raises:
        InvalidArgumentsError: a value cannot be sent in a header.
    """
    headers = {
        parameter.name: _header(parameter, arguments[parameter.argument])
        for parameter in _present(operation, arguments, "header")
    }
    cookies = [
        f"{name}={quote(value, safe='')}"
        for parameter in _present(operation, arguments, "cookie")
        for name, value in _pairs(parameter, arguments[parameter.argument])
    ]
    return headers | ({"Cookie": "; ".join(cookies)} if cookies else {})


def has_dot_segment(path: str) -> bool:
    """Whether the path has a ``.`` or ``..`` segment for servers and proxies, which may decode %2F and %5C first."""
    return any(part in {".", ".."} for part in re.split(r"[/\\]", unquote(path.partition("?")[0])))


def _query_parts(parameter: ApiParameter, value: Any) -> list[str]:
    """Returns the encoded ``name=value`` pairs: several for exploded arrays and objects."""
    separator = _SEPARATORS.get(parameter.style)
    if separator is None or parameter.as_json or parameter.explode or not isinstance(value, dict | list):
        return encoded_pairs(_pairs(parameter, value), allow_reserved=parameter.allow_reserved)
    parts = _alternating(value) if isinstance(value, dict) else map(plain, value)
    quoted = [quoted_value(part, allow_reserved=parameter.allow_reserved) for part in parts]
    return [f"{_quoted(parameter.name)}={separator.join(quoted)}"]


def _pairs(parameter: ApiParameter, value: Any) -> Pairs:
    """Returns the names and values of a parameter in the query or in a cookie."""
    name = parameter.name
    if parameter.as_json:
        return [(name, json.dumps(value, ensure_ascii=False))]
    if parameter.style == "deepObject" and isinstance(value, dict | list):
        return deep_pairs(name, value)
    if isinstance(value, dict):
        if parameter.explode:
            return [(key, plain(part)) for key, part in value.items()]
        return [(name, ",".join(_alternating(value)))]
    if isinstance(value, list):
        if parameter.explode:
            return [(name, plain(part)) for part in value]
        return [(name, ",".join(map(plain, value)))]
    return [(name, plain(value))]


def deep_pairs(name: str, value: Any) -> Pairs:
    """Returns ``name[key]`` pairs for nested objects; array items have their index as key."""
    if isinstance(value, dict):
        return [pair for key, part in value.items() for pair in deep_pairs(f"{name}[{key}]", part)]
    if isinstance(value, list):
        return [pair for index, part in enumerate(value) for pair in deep_pairs(f"{name}[{index}]", part)]
    return [(name, plain(value))]


def plain(value: Any) -> str:
    """Returns a value as text: strings unchanged, null empty, others as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _present(operation: ApiOperation, arguments: Mapping[str, Any], location: str) -> Iterator[ApiParameter]:
    return (
        parameter
        for parameter in operation.parameters
        if parameter.location == location and parameter.argument in arguments
    )


def _in_path(parameter: ApiParameter, value: Any) -> str:
    if parameter.as_json:
        return _quoted(json.dumps(value, ensure_ascii=False))
    parts = list(_path_parts(parameter, value))
    if not any(parts):
        raise InvalidArgumentsError(
            f"{parameter.argument} must not be empty: the path would lead to another operation.",
            details={"fields": {parameter.argument: "must not be empty"}},
        )
    if parameter.style == "label":
        return "." + ("." if parameter.explode else ",").join(parts)
    if parameter.style != "matrix":
        return ",".join(parts)
    name = _quoted(parameter.name)
    if not parameter.explode or not isinstance(value, dict | list):
        return f";{name}={','.join(parts)}"
    return "".join(f";{part}" if isinstance(value, dict) else f";{name}={part}" for part in parts)


def _path_parts(parameter: ApiParameter, value: Any) -> Iterable[str]:
    if isinstance(value, list):
        return [_quoted(plain(part)) for part in value]
    if isinstance(value, dict) and parameter.explode:
        return [f"{_quoted(key)}={_quoted(plain(part))}" for key, part in value.items()]
    if isinstance(value, dict):
        return [_quoted(part) for part in _alternating(value)]
    return [_quoted(plain(value))]


def _header(parameter: ApiParameter, value: Any) -> str:
    if parameter.as_json:
        text = json.dumps(value)
    elif isinstance(value, list):
        text = ",".join(map(plain, value))
    elif isinstance(value, dict) and parameter.explode:
        text = ",".join(f"{key}={plain(part)}" for key, part in value.items())
    elif isinstance(value, dict):
        text = ",".join(_alternating(value))
    else:
        text = plain(value)
    if not _HEADER_VALUE.fullmatch(text):
        wrong = "must be printable ASCII on one line: it is sent in a header"
        raise InvalidArgumentsError(f"{parameter.argument} {wrong}.", details={"fields": {parameter.argument: wrong}})
    return text


def encoded_pairs(pairs: Pairs, *, allow_reserved: bool = False) -> list[str]:
    """Returns ``name=value`` texts, percent-encoded."""
    return [f"{_quoted(name)}={quoted_value(text, allow_reserved=allow_reserved)}" for name, text in pairs]


def quoted_value(text: str, *, allow_reserved: bool) -> str:
    """Returns a value of a query or form, percent-encoded. With ``allow_reserved``, percent-encoded text stays
    unchanged.
    """
    if not allow_reserved:
        return _quoted(text)
    parts = _PERCENT_TRIPLE.split(text)  # every second one is a triple
    return "".join(part if number % 2 else quote(part, safe=_RESERVED) for number, part in enumerate(parts))


def _alternating(value: Mapping[str, Any]) -> list[str]:
    return [text for key, part in value.items() for text in (key, plain(part))]


def _quoted(text: str) -> str:
    return quote(text, safe="")
