"""Credentials of users for services, such as an API key for Jira: kept encrypted, and given to calls of their owner.

Used by the daemon's wiring, which passes the vault to dispatch and to the platform API. Knows the store. Must not
know HTTP, sessions, tools or running calls.
"""

from .credential_values import (
    MAX_CREDENTIAL_BYTES,
    MAX_FIELDS,
    MAX_SERVICES,
    CredentialEntry,
    check_service,
    read_fields,
)
from .credential_vault import CredentialCipher, CredentialVault, LocalVault

__all__ = [
    "MAX_CREDENTIAL_BYTES",
    "MAX_FIELDS",
    "MAX_SERVICES",
    "CredentialCipher",
    "CredentialEntry",
    "CredentialVault",
    "LocalVault",
    "check_service",
    "read_fields",
]
