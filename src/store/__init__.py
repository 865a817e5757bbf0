"""The embedded database: what is kept of each call, and the sums. All SQL of the house is here."""

from .rows import CallRow, ModelSums, OutboxState, Settled, Sums, Totals
from .schema import SCHEMA, NewerSchemaError, StoreError, schema_version
from .store import Store
from .writer import Content, Retention

__all__ = [
    "SCHEMA",
    "CallRow",
    "Content",
    "ModelSums",
    "NewerSchemaError",
    "OutboxState",
    "Retention",
    "Settled",
    "Store",
    "StoreError",
    "Sums",
    "Totals",
    "schema_version",
]
