"""Credentials of users: the names of their services and fields, and where a user gives one. Pure."""

import re
from typing import Final

import msgspec

from .error_codes import PermissionDeniedError

SERVICE_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_]|-(?=[a-z0-9_])){0,62}")
"""The names of services, such as ``jira``: parts of URLs, and of names of secrets, where ``--`` ends the user."""
FIELD_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""The names of a credential's fields, such as ``api_key``."""
USER_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+|=-]{0,127}")
"""The ids of users for whom a gateway acts. Without commas and spaces, so that no repeated header is an id, and without
colons, which only names of principals have."""
USER_HEADER: Final = "x-user-id"
"""The header with the id of the user for whom a gateway acts."""


class CredentialField(msgspec.Struct, frozen=True):
    """One field of a user's credential for a service."""

    service: str
    field: str

    def __str__(self) -> str:
        return f"{self.service} (field {self.field})"


def where_to_give(wanted: CredentialField, page: str | None) -> str:
    """How a user gives a credential, as a sentence. ``page``: the operator's page for that."""
    command = f"`toold credentials set {wanted.service} {wanted.field}`"
    if page is not None:
        return f"Give it at {page}, or with {command}."
    return f"Give it with {command}, or by POST to /api/v1/user/credentials."


class MissingCredentialError(PermissionDeniedError):
    """The caller has not given a credential that the tool needs."""

    def __init__(self, wanted: CredentialField, page: str | None) -> None:
        self.wanted = wanted
        message = missing_credential(wanted, page)
        details = {"credential": {"service": wanted.service, "field": wanted.field}}
        super().__init__(message, executed="no", details=details, summary=f"no credential for {wanted}")


def missing_credential(wanted: CredentialField, page: str | None) -> str:
    """What a user reads whose credential is missing."""
    return f"This needs your credential for {wanted}, which is not stored. {where_to_give(wanted, page)}"
