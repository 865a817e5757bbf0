"""Creates the daemon's vault for credentials of users."""

from pathlib import Path

import structlog

from ..protocol.error_codes import ServiceUnavailableError
from ..store import Store
from ..user_credentials import CredentialVault, LocalVault, SecretManagerVault, VaultSettings
from .persistence.key_files import CREDENTIAL_KEY_FILE
from .persistence.sealed_texts import SealedTexts, open_sealed_texts
from .persistence.state_directory import StateError

_log = structlog.get_logger(__name__)


def open_vault(settings: VaultSettings, store: Store, state_dir: Path) -> CredentialVault:
    """The configured vault. For the vault in the database, the key file is created with the first credential."""
    if settings.secret_manager is not None:
        return SecretManagerVault(settings.secret_manager, settings.page)
    return local_vault(store, state_dir, settings.page)


def local_vault(store: Store, state_dir: Path, page: str | None) -> LocalVault:
    """The vault in the database."""
    return LocalVault(store, lambda: _cipher(state_dir / CREDENTIAL_KEY_FILE), page)


async def prepare_vault(store: Store, *vaults: CredentialVault) -> None:
    """Prepares the vault after the start, once the database is open."""
    await store.opened()
    try:
        for vault in vaults:
            await vault.prepare()
    except ServiceUnavailableError as error:
        _log.error("credentials of users cannot be used", reason=error.summary)


def _cipher(path: Path) -> SealedTexts:
    """
    Raises:
        ServiceUnavailableError: the package is not installed, or the key file cannot be used.
    """
    try:
        return open_sealed_texts(path)
    except ImportError:
        why = "They need the package cryptography: pip install 'toold[a2a]'"
        raise ServiceUnavailableError.content_free(f"Credentials of users cannot be stored here. {why}.") from None
    except StateError as error:
        _log.error("the key of users' credentials cannot be used", reason=str(error))
        raise ServiceUnavailableError.content_free(
            f"Credentials of users cannot be used: {path.name} in the state directory is not usable; "
            "the daemon's log says why."
        ) from None
