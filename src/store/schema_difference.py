"""Compares the definitions in a database with those of its schema.

Rows are signed, but triggers, views and indexes are not. An added trigger could copy, change or delete later rows.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple


class SchemaDifference(NamedTuple):
    """A definition that differs from the schema."""

    fault: Literal["added", "missing", "changed"]
    kind: str
    """``table``, ``index``, ``trigger`` or ``view``; in PostgreSQL also ``function``, ``rule`` or ``policy``."""
    name: str


def compared(known: Mapping[tuple[str, str], str], actual: Mapping[tuple[str, str], str]) -> list[SchemaDifference]:
    """Returns the definitions, by kind and name, that were added, removed or changed."""
    return [
        SchemaDifference(fault, *place)
        for place in sorted(known.keys() | actual.keys())
        if (fault := _fault(known.get(place), actual.get(place))) is not None
    ]


def _fault(known: str | None, actual: str | None) -> Literal["added", "missing", "changed"] | None:
    if known == actual:
        return None
    return "added" if known is None else "missing" if actual is None else "changed"
