"""The embedded database: what is kept of each call, and the sums. All SQL of the house is here."""

from .rows import CallRow, OutboxState, Settled, Totals
from .schema import SCHEMA, StoreError, schema_version
from .store import Store
from .writer import Retention

__all__ = [
    "SCHEMA",
    "CallRow",
    "OutboxState",
    "Retention",
    "Settled",
    "Store",
    "StoreError",
    "Totals",
    "schema_version",
]
