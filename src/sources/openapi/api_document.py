"""Parses API documents, JSON or YAML, and finds their references to other documents. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec

from ...protocol.json_pieces import TooManyValuesError, decode_in_pieces
from ...tools import YamlError, read_yaml

MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
"""The maximum size of a document. GitHub's, one of the largest, has 12 MiB."""
MAX_DOCUMENT_VALUES: Final = 5_000_000
"""The maximum number of values. At 0.4 µs each (decision 54), decoding takes 2 s in a thread."""
MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of a document with its references. When parsed, they take about ten times as much memory (decision
49).
"""
MAX_DEPTH: Final = 200
MAX_ALIASED: Final = 1_000_000
"""The maximum number of values that all YAML aliases of one document may expand to."""

_READABLE: Final = (".json", ".yaml", ".yml")


class ApiDocumentError(Exception):
    """A document cannot be read; the message says which and why."""


def read_document(content: bytes, name: str) -> dict[str, Any]:
    """Parses a document; all keys are strings.

    Raises:
        ApiDocumentError: the document is too large, nested too deeply, neither JSON nor YAML, or not an object.
    """
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ApiDocumentError(f"{name} has more than {MAX_DOCUMENT_BYTES // 1024**2} MiB")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        document = (
            _json(content)
            if content.lstrip()[:1] == b"{"
            else read_yaml(content, max_depth=MAX_DEPTH, max_aliased=MAX_ALIASED)
        )
    except RecursionError:
        raise ApiDocumentError(f"{name} is nested too deeply") from None
    except ValueError as error:  # YamlError, and msgspec's
        raise ApiDocumentError(f"{name} is neither JSON nor YAML ({error})"[:400]) from None
    if not isinstance(document, dict):
        raise ApiDocumentError(f"{name} is not an object at its top level")
    return document


def _json(content: bytes) -> Any:
    try:
        return decode_in_pieces(content, max_values=MAX_DOCUMENT_VALUES)
    except TooManyValuesError:
        raise ValueError(f"it has more than {MAX_DOCUMENT_VALUES:,} values") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        try:  # YAML may also start with a brace
            return read_yaml(content, max_depth=MAX_DEPTH, max_aliased=MAX_ALIASED)
        except YamlError:
            raise error from None


def outside_references(document: Mapping[str, Any], uri: str) -> Iterator[str]:
    """Yields the URLs of other documents that this one, at ``uri``, refers to."""
    seen: set[int] = set()
    yielded: set[str] = set()
    parts: list[Any] = [document]
    while parts:
        part = parts.pop()
        if not isinstance(part, dict | list) or id(part) in seen:
            continue
        seen.add(id(part))
        parts.extend(part.values() if isinstance(part, dict) else part)
        target = part.get("$ref") if isinstance(part, dict) else None
        if isinstance(target, str) and not target.startswith("#"):
            other = absolute(target, uri)[0]
            if other != uri and other not in yielded:
                yielded.add(other)
                yield other


def absolute(reference: str, base: str) -> tuple[str, str]:
    """Resolves a reference in the document at ``base`` to a document's URL and a fragment."""
    try:
        joined, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        return "", ""
    return joined, fragment


def may_follow(uri: str, root: str) -> bool:
    """Whether the document at ``root`` may refer to the document at ``uri``. This protects other files and servers.

    Documents on the same server are allowed; for a file, files with a document's suffix below the parent of its
    directory.
    """
    try:
        other, own = urlsplit(uri), urlsplit(root)
    except ValueError:
        return False
    if (other.scheme, other.netloc) != (own.scheme, own.netloc):
        return False
    if own.scheme != "file":
        return True
    path, above = unquote(other.path), unquote(own.path).rsplit("/", 2)[0] + "/"
    return path.lower().endswith(_READABLE) and path.startswith(above) and ".." not in path.split("/")
