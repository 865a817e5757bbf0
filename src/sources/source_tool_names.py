"""Derives the names of tools and arguments from those of an API or a server. Pure."""

import hashlib
import re
from collections.abc import Container
from typing import Final

MAX_CHARS: Final = 64
"""The maximum length of a name of a function or an argument that vendors accept."""

_HASH_CHARS: Final = 8


def tool_name(prefix: str, name: str, taken: Container[str]) -> str:
    """Returns ``prefix_name`` in the characters of a tool name, shortened if it is too long, numbered if it is
    taken.
    """
    plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "_", name)).strip("_-") or "operation"
    return _free(_shortened(f"{prefix}_{plain}"), taken)


def default_operation_id(method: str, path: str) -> str:
    """Returns the id for an operation without one, such as ``get_contacts_contactId``."""
    return f"{method.lower()}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_') or 'root'}"


def argument_name(name: str, where: str, taken: Container[str]) -> str:
    """Returns the argument name of an API parameter: its own name if possible, else with the prefix ``where``."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.-") or where
    plain = _shortened(plain)
    return plain if plain not in taken else _free(_shortened(f"{where}_{plain}"), taken)


def _shortened(name: str) -> str:
    """Returns a short name that depends only on the text, because toolsets and callers rely on it."""
    if len(name) <= MAX_CHARS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: MAX_CHARS - _HASH_CHARS - 1]}_{digest}"


def _free(name: str, taken: Container[str]) -> str:
    """Returns the name, numbered if it is taken. A binary search finds the number among thousands."""
    if name not in taken:
        return name
    used, unused = 1, 2
    while _numbered(name, unused) in taken:
        used, unused = unused, 2 * unused
    while unused - used > 1:
        middle = (used + unused) // 2
        if _numbered(name, middle) in taken:
            used = middle
        else:
            unused = middle
    return _numbered(name, unused)


def _numbered(name: str, number: int) -> str:
    return f"{name[: MAX_CHARS - len(str(number)) - 1]}_{number}"
