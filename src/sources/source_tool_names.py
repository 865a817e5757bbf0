"""Names of tools and of their arguments, from an API's or a server's own. Pure."""

import hashlib
import re
from collections.abc import Container
from typing import Final

MAX_CHARS: Final = 64
"""What vendors take as a function's name, or an argument's."""

_HASH_CHARS: Final = 8


def tool_name(prefix: str, said: str, taken: Container[str]) -> str:
    """``prefix_said`` in the characters of a tool's name; shortened if too long, numbered if taken."""
    plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "_", said)).strip("_-") or "operation"
    return _free(_shortened(f"{prefix}_{plain}"), taken)


def said_of(method: str, path: str) -> str:
    """What an operation without an id is called: ``get_contacts_contactId``."""
    return f"{method.lower()}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_') or 'root'}"


def argument_name(name: str, where: str, taken: Container[str]) -> str:
    """An argument's name for a parameter of the API: its own where it can be, else with ``where`` before it."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.-") or where
    plain = _shortened(plain)
    return plain if plain not in taken else _free(_shortened(f"{where}_{plain}"), taken)


def _shortened(name: str) -> str:
    """The same name for the same text, whatever else is there: toolsets and callers know it by heart."""
    if len(name) <= MAX_CHARS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: MAX_CHARS - _HASH_CHARS - 1]}_{digest}"


def _free(name: str, taken: Container[str]) -> str:
    """The name, or with the next number behind it. Where thousands have it, few of them are looked at."""
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
