"""Credentials in the database: the key, its replacement, and limits."""

from pathlib import Path
from typing import Any

import pytest
from toold.daemon.credential_host import open_vault, prepare_vault
from toold.daemon.persistence.key_files import CREDENTIAL_KEY_FILE
from toold.daemon.persistence.sealed_texts import MAX_KEYS, open_sealed_texts
from toold.daemon.persistence.state_directory import StateError
from toold.protocol.error_codes import OverCapacityError, ServiceUnavailableError
from toold.protocol.user_credential import CredentialField, MissingCredentialError
from toold.store import UserCredentialRow
from toold.user_credentials import VaultSettings, credential_vault, read_vault

KEY = CredentialField("jira", "api_key")


async def test_a_key_is_replaced(open_store: Any, tmp_path: Path) -> None:
    """A new first line encrypts from now on, and after a start everything; then the old key can be removed."""
    store, path = open_store(), tmp_path / CREDENTIAL_KEY_FILE
    await open_vault(VaultSettings(), store, tmp_path).put("ann", "jira", {"api_key": "ann-key"})
    old = path.read_text()
    path.write_text("ab" * 32 + "\n" + old)
    vault = open_vault(VaultSettings(), store, tmp_path)
    assert await vault.value("ann", KEY) == "ann-key"
    await prepare_vault(store, vault)
    path.write_text("ab" * 32 + "\n")
    assert await open_vault(VaultSettings(), store, tmp_path).value("ann", KEY) == "ann-key"
    path.write_text(old)
    assert await open_vault(VaultSettings(), store, tmp_path).value("ann", KEY) is None
    await store.close()


def test_where_to_give_it() -> None:
    """The message names the operator's page if there is one, and always the command."""
    for page, named in (
        (None, "POST to /api/v1/user/credentials"),
        ("https://portal.example", "https://portal.example"),
    ):
        message = MissingCredentialError(KEY, page).message
        assert named in message
        assert "`toold credentials set jira api_key`" in message
    assert read_vault({"page": "https://portal.example"}).page == "https://portal.example"


async def test_a_row_of_another_principal_cannot_be_opened(open_store: Any, tmp_path: Path) -> None:
    """Who can write to the database gains nothing by copying a row."""
    store = open_store()
    vault = open_vault(VaultSettings(), store, tmp_path)
    await vault.put("ann", "jira", {"api_key": "ann-key"})
    row = await store.user_credentials.find("ann", "jira")
    assert row is not None
    await store.user_credentials.write(UserCredentialRow("bob", "jira", row.fields, row.changed_at, row.sealed))
    assert await vault.value("bob", KEY) is None
    assert await vault.value("ann", KEY) == "ann-key"
    await store.close()


async def test_all_credentials_have_a_limit(open_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it no principal can add one."""
    monkeypatch.setattr(credential_vault, "MAX_STORED", 1)
    store = open_store()
    vault = open_vault(VaultSettings(), store, tmp_path)
    await vault.put("ann", "jira", {"api_key": "ann-key"})
    with pytest.raises(OverCapacityError):
        await vault.put("bob", "jira", {"api_key": "bob-key"})
    await store.close()


@pytest.mark.parametrize("content", ["", "not a key", "ab" * 31, "\n".join(["ab" * 32] * (MAX_KEYS + 1))])
async def test_a_file_without_keys_is_refused(open_store: Any, tmp_path: Path, content: str) -> None:
    """Nothing is stored under a wrong key, and the file stays as it is."""
    path = tmp_path / CREDENTIAL_KEY_FILE
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(StateError, match="1 to 8 keys, one per line"):
        open_sealed_texts(path)
    store = open_store()
    with pytest.raises(ServiceUnavailableError, match=r"credentials\.key"):
        await open_vault(VaultSettings(), store, tmp_path).put("ann", "jira", {"api_key": "ann-key"})
    assert path.read_text() == content
    await store.close()
