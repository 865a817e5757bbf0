"""Which directory an editor has open, by its answer to ``roots/list``. Pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def first_directory(result: Mapping[str, Any] | None) -> Path | None:
    """The first root that is a directory of this machine; None where there is none, or the answer is an error."""
    roots = result.get("roots") if result is not None else None
    for root in roots if isinstance(roots, list) else []:
        directory = _directory(root.get("uri")) if isinstance(root, dict) else None
        if directory is not None:
            return directory
    return None


def _directory(uri: object) -> Path | None:
    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not path.startswith("/") or "\0" in path:
        return None
    return Path(path)
