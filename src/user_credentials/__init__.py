"""Credentials of users for services, such as an API key for Jira: stored encrypted, and passed only to calls of their
owner.

Used by the daemon's wiring, which passes the vault to dispatch and to the platform API. Knows the store; from
`sources/` it uses only `json_server.py`, `google_token.py` and types of settings, for Google Secret Manager. Must not
know sessions, tools, requests of clients or running calls.
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
from .secret_manager_vault import SecretManagerVault
from .sign_in_vault import SignInVault
from .vault_settings import VaultSettings, VaultSettingsError, anchored_vault, read_vault

__all__ = [
    "MAX_CREDENTIAL_BYTES",
    "MAX_FIELDS",
    "MAX_SERVICES",
    "CredentialCipher",
    "CredentialEntry",
    "CredentialVault",
    "LocalVault",
    "SecretManagerVault",
    "SignInVault",
    "VaultSettings",
    "VaultSettingsError",
    "anchored_vault",
    "check_service",
    "read_fields",
    "read_vault",
]
