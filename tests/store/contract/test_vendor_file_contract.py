"""The owners of vendor files in the store."""

from collections.abc import Callable

import pytest
from toold.store import Store, VendorFileDeleted, VendorFileUploaded
from toold.store.postgres import pg_vendor_file_sql
from toold.store.sqlite import vendor_file_sql

OpenStore = Callable[..., Store]


async def record(store: Store, principal: str, *file_ids: str, at: float = 1.0) -> None:
    for file_id in file_ids:
        await store.vendor_files.record_upload(VendorFileUploaded("kimi", file_id, principal, at))


async def test_owners_survive_a_restart(open_again: OpenStore) -> None:
    """Each principal has the files that it uploaded to this vendor; a deleted file has no owner."""
    store = open_again()
    await record(store, "ann", "a", "b", "gone")
    await record(store, "bob", "c")
    store.vendor_files.record_deletion(VendorFileDeleted("kimi", "gone"))
    await store.close()
    store = open_again()
    assert await store.vendor_files.owned_files("kimi", "ann") == {"a", "b"}
    assert await store.vendor_files.owned_files("kimi", "bob") == {"c"}
    assert await store.vendor_files.owned_files("glm", "ann") == set()
    await store.close()


async def test_the_last_upload_decides(open_again: OpenStore) -> None:
    """A vendor that uses an id again gives the new file, and not the old owner the new content."""
    store = open_again()
    await record(store, "ann", "a")
    await record(store, "bob", "a")
    assert await store.vendor_files.owned_files("kimi", "ann") == set()
    assert await store.vendor_files.owned_files("kimi", "bob") == {"a"}
    await store.close()


async def test_the_number_of_owners_is_bounded(open_again: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, retention deletes the oldest records."""
    for module in (vendor_file_sql, pg_vendor_file_sql):
        monkeypatch.setattr(module, "MAX_OWNERS", 2)
    store = open_again()
    for number in range(4):
        await record(store, "ann", str(number), at=float(number))
    await store.close()
    store = open_again()
    await store.sync()
    await store.flush()
    assert await store.vendor_files.owned_files("kimi", "ann") == {"2", "3"}
    await store.close()
