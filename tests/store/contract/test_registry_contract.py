"""Entries of the served registry, and credentials of users."""

from collections.abc import Callable

from toold.store import (
    RegistryEntryDeleted,
    RegistryEntryRow,
    RegistryEntrySaved,
    Store,
    UserCredentialDeleted,
    UserCredentialRow,
)

OpenStore = Callable[..., Store]


def version(number: int, entry: str = "b", kind: str = "prompt") -> RegistryEntryRow:
    return RegistryEntryRow(kind, entry, number, b"{}", 1.5, float(number))


async def test_entries_keep_their_last_versions(open_again: OpenStore) -> None:
    """The versions beyond those that are kept are deleted; a deleted entry has none. Entries are in order."""
    store = open_again()
    for number in (1, 2, 3):
        await store.registry_entries.write(RegistryEntrySaved(version(number), kept=2))
    for entry in ("B", "a", "gone"):
        await store.registry_entries.write(RegistryEntrySaved(version(1, entry), kept=2))
    await store.registry_entries.write(RegistryEntryDeleted("prompt", "gone"))
    await store.close()
    store = open_again()
    assert await store.registry_entries.all_entries() == [version(1, "B"), version(1, "a"), version(2), version(3)]
    await store.close()


async def test_a_credential_replaces_the_one_before(open_again: OpenStore) -> None:
    """A principal has one credential for each service; another principal does not find it."""
    store = open_again()
    first = UserCredentialRow("ann", "crm", ("token",), 1.0, b"\0sealed")
    second = UserCredentialRow("ann", "crm", ("user", "password"), 2.0, b"again")
    other = UserCredentialRow("ann", "a\0", (), 1.0, b"")
    await store.user_credentials.write(first)
    assert await store.user_credentials.find("ann", "crm") == first
    await store.user_credentials.write(second)
    await store.user_credentials.write(other)
    await store.close()
    store = open_again()
    assert await store.user_credentials.of_principal("ann") == [other, second]
    assert await store.user_credentials.find("bob", "crm") is None
    assert await store.user_credentials.count() == 2
    await store.user_credentials.write(UserCredentialDeleted("ann", "crm"))
    assert await store.user_credentials.of_principal("ann") == [other]
    await store.close()


async def test_all_credentials_are_read_in_order(store: Store) -> None:
    """A look continues after the last credential of the look before, over all principals."""
    rows = [UserCredentialRow(f"p{number:03}", "crm", (), 1.0, b"") for number in range(130)]
    for row in rows[::-1]:
        await store.user_credentials.write(row)
    first = await store.user_credentials.after("", "")
    rest = await store.user_credentials.after(first[-1].principal, first[-1].service)
    assert (first, rest) == (rows[:100], rows[100:])
