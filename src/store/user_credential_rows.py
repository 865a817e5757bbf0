"""Stored credentials of users."""

from typing import NamedTuple


class UserCredentialRow(NamedTuple):
    """The credential of one principal for one service. A new row replaces the earlier one."""

    principal: str
    service: str
    fields: tuple[str, ...]
    """Their names."""
    changed_at: float
    """Unix time in seconds."""
    sealed: bytes
    """Opaque to the store."""


class UserCredentialDeleted(NamedTuple):
    """A credential was removed."""

    principal: str
    service: str
