"""Credentials of users: the names of services and fields, and where a user gives a credential. Pure."""

import re
from typing import Final

import msgspec

from .error_codes import PermissionDeniedError

SERVICE_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_]|-(?=[a-z0-9_])){0,62}")
"""The format of service names, such as ``jira``. They are parts of URLs, and of names of secrets, where ``--`` ends the
user id.
"""
FIELD_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""The format of field names, such as ``api_key``."""
USER_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+|=-]{0,127}")
"""The format of the ids of users for whom a gateway acts. Commas and spaces are excluded, so that a repeated header is
never an id; colons are excluded because only names of principals have them.
"""
USER_HEADER: Final = "x-user-id"
"""The header with the id of the user for whom a gateway acts."""


class CredentialField(msgspec.Struct, frozen=True):
    """One field of a user's credential for a service."""

    service: str
    field: str

    def __str__(self) -> str:
        return f"{self.service} (field {self.field})"


def where_to_give(wanted: CredentialField, page: str | None) -> str:
    """A sentence that says how a user gives a credential. ``page`` is the operator's page for that."""
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
    """The message for a user whose credential is missing."""
    return f"This needs your credential for {wanted}, which is not stored. {where_to_give(wanted, page)}"
