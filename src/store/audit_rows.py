"""Audit rows as the values of their columns."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from .store_rows import CallRow

COLUMNS: Final = CallRow.__struct_fields__


_ARGUMENTS: Final = COLUMNS.index("arguments")


Values = tuple[Any, ...]
"""One row's column values, in the order of ``COLUMNS``."""


def audit_values(row: CallRow, arguments: str | None) -> Values:
    """Returns a row's column values, with its reduced arguments as JSON."""
    fields = msgspec.structs.astuple(row)
    return (*fields[:_ARGUMENTS], arguments, *fields[_ARGUMENTS + 1 :])


def audit_row(columns: Iterable[Any]) -> CallRow:
    """Returns the row of column values in the order of ``COLUMNS``."""
    fields = dict(zip(COLUMNS, columns, strict=True))
    fields["simulated"] = bool(fields["simulated"])
    if fields["arguments"] is not None:
        fields["arguments"] = msgspec.json.decode(fields["arguments"])
    return CallRow(**fields)
