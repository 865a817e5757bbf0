"""Gives commands direct access to the database of the setting ``store``, which several nodes use."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..daemon import Settings
from ..store import StoreError
from ..version import install_extra
from .command_settings import settings_with
from .daemon_connection import CommandFailedError

if TYPE_CHECKING:
    from ..sources import PinStorage
    from ..store.postgres.postgres_archive import PostgresArchive


def shared_store_address() -> str | None:
    """The address of the database; None if the daemon uses the embedded one."""
    store = settings_with({}).store
    return None if store is None else store.get_secret_value()


def pins_for_check(settings: Settings, state_dir: Path) -> "PinStorage":
    """The pins of sources, for comparison with a listing.

    Raises:
        CommandFailedError: the database cannot be read.
    """
    from ..daemon.store_opening import known_pins

    try:
        return known_pins(settings, state_dir)
    except StoreError as error:
        raise CommandFailedError(f"the pins of the sources cannot be read: {error}") from None


@contextmanager
def postgres_archive(address: str) -> Iterator["PostgresArchive"]:
    """The audit trail in a PostgreSQL database.

    Raises:
        CommandFailedError: the package for PostgreSQL is not installed.
        StoreError: the database cannot be used; also raised within the block.
    """
    require_postgres()
    from ..store.postgres.postgres_archive import open_postgres_archive

    with open_postgres_archive(address) as archive:
        yield archive


def require_postgres() -> ModuleType:
    """The package for PostgreSQL.

    Raises:
        CommandFailedError: it is not installed.
    """
    try:
        import psycopg
    except ModuleNotFoundError as error:
        raise CommandFailedError(f"PostgreSQL needs the package {error.name}; {install_extra('postgres')}") from None
    return psycopg
